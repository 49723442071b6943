import type { ActorRefFrom } from 'xstate';
import type { callMachine } from '../machines/call.machine.ts';
import type { CallControl } from '../machines/call-control.ts';
import type { LegId } from '../machines/events.ts';
import type { MediaSession } from '../media/media-plane.ts';
import type { Moment } from '../runtime/clock.ts';
import type { InboundCall } from '../sip/sip-gateway.ts';
import type { CallRow } from '../storage/queries/calls.ts';
import type { CallJournal } from './call-journal.ts';
import type { CallSpeech } from './call-speech.ts';
import type { NewLeg } from './dialer.ts';

/**
 * The live calls of this process, one root actor each. A call's sockets, timers and files hang on its
 * AbortController, which is aborted when the call leaves the registry, however it ended.
 */
export interface CallRegistry {
  add(call: LiveCall): void;
  get(callId: string): LiveCall | undefined;
  list(): LiveCall[];
  /** Ends the call's life here: aborts its signal and forgets it. Idempotent. */
  remove(callId: string): void;
  /** Resolves once no call is left. */
  idle(): Promise<void>;
}

export interface LiveCall {
  /** As it was admitted: numbers, limits and prices do not change afterwards. */
  readonly row: CallRow;
  readonly admittedAt: Moment;
  readonly actor: ActorRefFrom<typeof callMachine>;
  readonly journal: CallJournal;
  readonly abort: AbortController;
  /** What the agent is told. */
  readonly speech: CallSpeech;
  media: MediaSession | null;
  /** The call of a peer that this is, until the customer's leg answers it. Null: the customer is dialed. */
  readonly inbound: InboundCall | null;
  /** The legs that were added. */
  readonly guests: Map<LegId, NewLeg>;
  /** By playback: what is to be played, until it is. Linear, 16 kHz, mono. */
  readonly sounds: Map<string, Int16Array<ArrayBuffer>>;
  /** When clearing began; null while the call is up. */
  clearedAt: Moment | null;
  /**
   * Resolves when it has happened and is stored, or was in effect before.
   * @throws TandemError CALL_NOT_LIVE, RECORDING_UNAVAILABLE, INTERNAL
   */
  control(control: CallControl): Promise<void>;
  /** @throws TandemError CALL_NOT_LIVE, LEG_NOT_FOUND unless these legs talk now */
  requireTalk(legs: readonly LegId[]): void;
  /** Resolves when the call is `initiated` and that is stored, or when it is settled without ever having been. */
  readonly initiated: Promise<'initiated' | 'settled'>;
  readonly settled: Promise<void>;
}

export function createCallRegistry(): CallRegistry {
  const calls = new Map<string, LiveCall>();
  let waiting: (() => void)[] = [];
  return {
    add(call) {
      calls.set(call.row.callId, call);
    },
    get: (callId) => calls.get(callId),
    list: () => [...calls.values()],
    remove(callId) {
      const call = calls.get(callId);
      if (!call) return;
      calls.delete(callId);
      call.abort.abort();
      if (calls.size > 0) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    async idle() {
      if (calls.size > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
