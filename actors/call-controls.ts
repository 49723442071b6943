import { randomUUID } from 'node:crypto';
import type { ActorRefFrom } from 'xstate';
import type { callMachine } from '../machines/call.machine.ts';
import { type CallControl, type ControlRefusal, isTalking, type Talk } from '../machines/call-control.ts';
import { MOST_GUESTS } from '../machines/call-setup.ts';
import { principalsOf } from '../machines/call-transfer.ts';
import { TandemError } from '../machines/errors.ts';
import { isLegName, type LegId } from '../machines/events.ts';
import type { CallJournal } from './call-journal.ts';

/** Requests to control one call. Each resolves once its outcome is stored. */
export interface CallControls {
  /** @throws TandemError CALL_NOT_LIVE, LEG_NOT_FOUND, TOO_MANY_LEGS, no_free_channel, RECORDING_UNAVAILABLE, LEG_NOT_LISTENING, PLAYBACK_NOT_FOUND, CONTROL_BUSY, INTERNAL */
  request(control: CallControl): Promise<void>;
  /**
   * Checks that these legs are talking, before a request for them is prepared. @throws TandemError CALL_NOT_LIVE,
   * LEG_NOT_FOUND
   */
  requireTalk(legs: readonly LegId[]): void;
  /** Rejects waiting requests, because the call is over. */
  end(): void;
}

interface CallControlsOptions {
  actor: Pick<ActorRefFrom<typeof callMachine>, 'on' | 'send' | 'getSnapshot'>;
  journal: Pick<CallJournal, 'drained'>;
}

export function openCallControls({ actor, journal }: CallControlsOptions): CallControls {
  const waiting = new Map<string, (refusal: ControlRefusal | null) => void>();
  actor.on('controlled', ({ controlId, refusal }) => {
    const settle = waiting.get(controlId);
    waiting.delete(controlId);
    settle?.(refusal);
  });
  return {
    async request(requested) {
      const controlId = randomUUID();
      const control = inPlace(requested, actor.getSnapshot().context.talk);
      const { promise, resolve } = Promise.withResolvers<ControlRefusal | null>();
      waiting.set(controlId, resolve);
      if (actor.getSnapshot().status === 'active') actor.send({ type: 'control.requested', controlId, control });
      else waiting.get(controlId)?.('CALL_NOT_LIVE');
      const refusal = await promise;
      waiting.delete(controlId);
      if (refusal !== null) throw errorOf(refusal);
      await journal.drained();
    },
    requireTalk(legs) {
      const snapshot = actor.getSnapshot();
      if (!snapshot.matches({ active: { live: 'bridged' } })) throw errorOf('CALL_NOT_LIVE');
      const { talk } = snapshot.context;
      if (!legs.every((leg) => isTalking(talk, legInPlace(leg, talk)))) throw errorOf('LEG_NOT_FOUND');
    },
    end() {
      for (const settle of waiting.values()) settle('CALL_NOT_LIVE');
      waiting.clear();
    },
  };
}

/**
 * A role names the leg in that place, even if a transfer has completed since the request. A transfer keeps its leg,
 * because the phone that requested it may have left.
 */
function inPlace(control: CallControl, talk: Talk): CallControl {
  switch (control.type) {
    case 'mute':
    case 'unmute':
    case 'hold':
    case 'resume':
    case 'dtmf':
      return { ...control, leg: legInPlace(control.leg, talk) };
    case 'play':
      return { ...control, legs: control.legs.map((leg) => legInPlace(leg, talk)) };
    default:
      return control;
  }
}

function legInPlace(leg: LegId, talk: Talk): LegId {
  return isLegName(leg) ? principalsOf(talk)[leg] : leg;
}

function errorOf(refusal: ControlRefusal): TandemError {
  return new TandemError(refusal, MESSAGES[refusal], RETRYABLE.has(refusal) ? { retryAfterS: 5 } : {});
}

const RETRYABLE: ReadonlySet<ControlRefusal> = new Set([
  'CONTROL_BUSY',
  'no_free_channel',
  'TRANSFER_IN_PROGRESS',
  'TRANSFER_NOT_ANSWERED',
]);

const MESSAGES: Readonly<Record<ControlRefusal, string>> = {
  CALL_NOT_LIVE: 'The two parties are not talking. Only a call in state `bridged` can be controlled.',
  LEG_NOT_FOUND:
    'The call has no such leg, or it has not answered yet. Name `agent`, `customer` or a leg_id of the call.',
  TOO_MANY_LEGS: `The call has ${MOST_GUESTS} further legs, which is the most. Remove one first.`,
  TRANSFER_IN_PROGRESS: 'Another transfer of this call is under way. Complete or cancel it first.',
  TRANSFER_NOT_FOUND:
    'The call has no such transfer under way. Start one with POST .../transfer. A blind one completes by itself.',
  TRANSFER_NOT_ANSWERED:
    'The target of the transfer has not answered yet. Try again when it has, or cancel the transfer.',
  no_free_channel:
    'All media ports are in use. Try again when a call has ended, or widen RTP_PORT_MIN to RTP_PORT_MAX.',
  RECORDING_UNAVAILABLE: 'The call is not being recorded, so there is no recording to pause.',
  LEG_NOT_LISTENING: 'The phone of this leg has put the call on hold. Try again when it is back.',
  PLAYBACK_NOT_FOUND: 'The call plays no sound with this playback_id, or not any more.',
  CONTROL_BUSY: 'Too many digits or sounds were sent to this leg at once. Try again in a few seconds.',
  INTERNAL: 'The media server could not do this. Try again.',
};
