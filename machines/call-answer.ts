import { legFields } from './call-control.ts';
import type { OnMachine } from './call-events.ts';
import type { AnswerResult, LegId } from './events.ts';

/** What a call does with the result of machine detection: plain data and pure functions. */

/** Whether the result ends the call. A person, or what may be one, is never hung up on. */
export function endsCall(onMachine: OnMachine | null, result: AnswerResult): boolean {
  return onMachine === 'hangup' && (result === 'machine' || result === 'beep' || result === 'fax');
}

/** The entry of the event log. */
export function moveOfAnswer({ leg, result, afterMs }: { leg: LegId; result: AnswerResult; afterMs: number }) {
  return { event: 'machine.detected', state: 'bridged', ...legFields(leg, { result, after_ms: afterMs }) } as const;
}

/** Why the call has ended. */
export function detailOfAnswer(result: AnswerResult): string {
  return result === 'fax' ? 'a fax machine answered' : 'an answering machine answered';
}
