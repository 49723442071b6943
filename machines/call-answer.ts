import { legFields } from './call-control.ts';
import type { OnMachine } from './call-events.ts';
import type { AnswerResult, LegId } from './events.ts';

/** Effect of machine detection on a call: serialisable data and pure functions. */

/** Whether the result ends the call. `human` and `unknown` never do. */
export function endsCall(onMachine: OnMachine | null, result: AnswerResult): boolean {
  return onMachine === 'hangup' && (result === 'machine' || result === 'beep' || result === 'fax');
}

export function moveOfAnswer({ leg, result, afterMs }: { leg: LegId; result: AnswerResult; afterMs: number }) {
  return { event: 'machine.detected', state: 'bridged', ...legFields(leg, { result, after_ms: afterMs }) } as const;
}

export function detailOfAnswer(result: AnswerResult): string {
  return result === 'fax' ? 'a fax machine answered' : 'an answering machine answered';
}
