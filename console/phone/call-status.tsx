import { Text } from '@mantine/core';
import { useServerNow } from '../parts/clock.ts';
import { duration } from '../parts/format.ts';
import { callText, causeText, microphoneText, phoneText } from '../text/phone.ts';
import { isOnHold } from './call-actions.ts';
import type { CallProgress } from './call-progress.ts';
import { type EndedCall, isFault, type PhoneCall, type PhoneState } from './phone-state.ts';

/** Describes the call's current state in a few words. */
export function statusOf(call: PhoneCall, { microphone }: PhoneState): string {
  const { phase, role, isAudible, isHeld, progress } = call;
  if (phase === 'ending') return callText.ending;
  if (microphone === 'asking') return callText.asking;
  const incoming = role === 'party' ? callText.incomingParty : callText.incoming;
  if (isFault(microphone)) {
    const fault = microphoneText[microphone].title;
    return phase === 'ringing' ? `${incoming}. ${fault}` : fault;
  }
  if (phase === 'ringing') return incoming;
  if (phase === 'connecting' || !isAudible) return callText.connecting;
  if (progress.transfer?.legId === call.legId) return callText.transferTarget;
  if (progress.transfer) return progress.transfer.isAnswered ? callText.transferConsulting : callText.transferRinging;
  if (isOnHold(call)) return callText.onHold;
  if (isHeld) return callText.held;
  return callText[progress.stage];
}

export function callerOf(call: PhoneCall | EndedCall | null): string | null {
  return call === null ? null : (call.customerNumber ?? phoneText.unknownNumber);
}

export function causeOf({ hangupCause, progress }: EndedCall): string | null {
  const cause = progress.outcome?.hangupCause ?? hangupCause;
  return cause === null ? null : (causeText[cause] ?? cause);
}

/** Talk time; empty before the talk. `endedAt`: when this phone left the call. */
export function Duration({ progress, endedAt }: { progress: CallProgress; endedAt?: string }) {
  const now = useServerNow();
  const { talkingSince, outcome } = progress;
  if (talkingSince === null) return null;
  const end = endedAt ?? outcome?.at;
  const until = end === undefined ? now : Date.parse(end);
  return (
    <Text component="span" inherit className="tabular" role="timer" aria-label={callText.duration}>
      {duration((until - Date.parse(talkingSince)) / 1000)}
    </Text>
  );
}
