import type { ActorRefFrom } from 'xstate';
import type { callMachine } from '../machines/call.machine.ts';
import type { CallControl } from '../machines/call-control.ts';
import type { LegId } from '../machines/events.ts';
import type { MediaSession } from '../media/media-plane.ts';
import type { Moment } from '../runtime/clock.ts';
import type { InboundCall } from '../sip/sip-gateway.ts';
import type { CallRow } from '../storage/queries/calls.ts';
import type { DialedTrunk } from '../storage/queries/trunks.ts';
import type { CallJournal } from './call-journal.ts';
import type { CallSpeech } from './call-speech.ts';
import type { NewLeg } from './dialer.ts';

/**
 * Live calls of this process, one root actor each. A call's sockets, timers and files depend on its AbortController,
 * which is aborted when the call leaves the registry for any reason.
 */
export interface CallRegistry {
  add(call: LiveCall): void;
  get(callId: string): LiveCall | undefined;
  list(): LiveCall[];
  /** Aborts the call's signal and removes it. Idempotent. */
  remove(callId: string): void;
  /** Resolves once no call remains. */
  idle(): Promise<void>;
}

export interface LiveCall {
  /** As admitted: numbers, limits and prices never change. */
  readonly row: CallRow;
  readonly admittedAt: Moment;
  readonly actor: ActorRefFrom<typeof callMachine>;
  readonly journal: CallJournal;
  readonly abort: AbortController;
  readonly speech: CallSpeech;
  media: MediaSession | null;
  /** As the admission read it, for the agent's leg. Null once used: later legs need its settings at their time. */
  trunk: DialedTrunk | null;
  /** The inbound call, until it is answered on the customer's leg. Null: the customer is dialed. */
  readonly inbound: InboundCall | null;
  readonly guests: Map<LegId, NewLeg>;
  /** Samples to play, by playback, until they start. Linear, 16 kHz, mono. */
  readonly sounds: Map<string, Int16Array<ArrayBuffer>>;
  /** When clearing began; null while the call is up. */
  clearedAt: Moment | null;
  /**
   * Resolves once the control is carried out and stored, or was already in effect.
   * @throws TandemError CALL_NOT_LIVE, RECORDING_UNAVAILABLE, INTERNAL
   */
  control(control: CallControl): Promise<void>;
  /** @throws TandemError CALL_NOT_LIVE, LEG_NOT_FOUND unless these legs are talking */
  requireTalk(legs: readonly LegId[]): void;
  /** Resolves once `initiated` is stored, or once the call is settled without ever reaching it. */
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
