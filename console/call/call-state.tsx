import { StatusBadge, type Tone } from '../parts/status-badge.tsx';
import { causeText, outcomeText } from '../text/call-words.ts';
import type { Call } from './call-data.ts';

type Outcome = Pick<Call, 'state' | 'terminal_event'>;

export function CallStateBadge({ call }: { call: Outcome }) {
  const { tone, label } = outcomeOf(call);
  return <StatusBadge tone={tone}>{label}</StatusBadge>;
}

export function outcomeOf({ state, terminal_event: end }: Outcome): { tone: Tone; label: string } {
  if (end === 'call.not_answered') return { tone: 'warning', label: outcomeText.not_answered };
  if (end === 'call.temporaryfailed') return { tone: 'bad', label: outcomeText.temporary };
  return { tone: TONES[state], label: outcomeText[state] };
}

const TONES: Record<Call['state'], Tone> = {
  pending: 'neutral',
  initiated: 'active',
  bridged: 'good',
  completed: 'neutral',
  failed: 'bad',
  rejected: 'bad',
  unknown: 'warning',
};

/** Reason of the call's end, if it adds something to the state. */
export function endText({ hangup_cause: cause, error_detail: detail }: Pick<Call, 'hangup_cause' | 'error_detail'>) {
  return detail ?? (cause === null ? null : causeText(cause));
}
