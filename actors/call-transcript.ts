import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { type ActorRefFrom, createActor, fromCallback, fromPromise } from 'xstate';
import type { TranscriptCommand, TranscriptReport } from '../machines/call-events.ts';
import type { CallSegment, LegId } from '../machines/events.ts';
import { transcriptMachine } from '../machines/transcript.machine.ts';
import type { ListeningPlane } from '../media/listening-plane.ts';
import { type Clock, momentOf } from '../runtime/clock.ts';
import { within } from '../runtime/waiting.ts';
import type { SpeechRecognition } from '../speech/speech-recognition.ts';
import type { Sql } from '../storage/database.ts';
import { concludeTranscript } from '../storage/queries/transcripts.ts';
import { CallHypotheses } from './call-hypotheses.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import {
  LIVE_RECOGNITION,
  type Tap,
  type Tapped,
  type TranscriberHypothesis,
  transcriberPort,
} from './leg-transcriber.ts';
import type { Logger } from './logger.ts';

/**
 * Transcribes live calls, one actor each. Recognition may finish after the call. Until the call's last event, segments
 * go to the call; later ones are only stored.
 */
export interface TranscriptDesk {
  /** Loads recognisers for a call that is about to be bridged, so that its first words do not wait. */
  preload(): Promise<void>;
  /** Taps agent and customer of a bridged call and transcribes them. Never throws. */
  begin(call: LiveCall, onReport: (report: TranscriptReport) => void): void;
  /** Also transcribes a third party. Idempotent. */
  join(callId: string, leg: LegId): void;
  /** Stops to transcribe a third party. */
  leave(callId: string, leg: LegId): void;
  /** Stops listening. Speech already received is still recognised. Idempotent. */
  finish(callId: string): void;
  /** Stops reporting to the call. Idempotent. */
  detach(callId: string): void;
  /** Marks a leg as lost. `reason` is a code. */
  loseLeg(callId: string, leg: LegId, reason: string): void;
  /** Starts or stops partial transcripts, which go to `onHypothesis`. Idempotent. */
  setHypotheses(callId: string, isOn: boolean): void;
  /** Ends a transcript as failed. `reason` is a code. Idempotent. */
  stop(callId: string, reason: string): void;
  /** Stops all transcripts and waits up to two seconds until they are stored. */
  close(): Promise<void>;
}

export interface TranscriptDeskOptions {
  sql: Sql;
  listening: ListeningPlane;
  recognition: SpeechRecognition;
  onHypothesis: (call: LiveCall, hypothesis: TranscriberHypothesis) => void;
  clock: Clock;
  logger: Logger;
}

interface Entry extends Tapped {
  actor: ActorRefFrom<typeof transcriptMachine>;
  call: LiveCall;
  /** Null once the call takes no more reports. */
  onReport: ((report: TranscriptReport) => void) | null;
  /** Segments recognised after the call took its last report. */
  late: CallSegment[];
  concluded: Promise<void>;
}

const CLOSE_TIMEOUT_MS = 2_000;

export function createTranscriptDesk(options: TranscriptDeskOptions): TranscriptDesk {
  const { sql, recognition, clock, logger } = options;
  const entries = new Map<string, Entry>();
  const machine = transcriptMachine.provide({
    actors: {
      transcriber: transcriberPort({ ...options, tappedOf: (callId) => entries.get(callId) }),
      conclude: fromPromise(async ({ input: { callId, error } }) => {
        const entry = entries.get(callId);
        if (!entry) return;
        // The call journal fails the stored transcript when it stores this event.
        if (entry.onReport !== null && error !== null)
          return entry.onReport({ type: 'transcript.failed', reason: error });
        await entry.call.journal.drained();
        await concludeTranscript(sql, { callId, late: entry.late, error, now: new Date(clock.now()) });
        entry.onReport?.({ type: 'transcript.ended' });
      }),
    },
  });

  function startTaps({ actor, call }: Entry, ports: Readonly<Record<LegId, MessagePort>>): void {
    const { callId } = call.row;
    const started = call.media?.startTap(ports) ?? Promise.reject(new Error('the call has no media'));
    started.catch((error) => {
      logger.warn({ callId, err: error }, 'call audio could not be tapped');
      for (const leg of Object.keys(ports)) actor.send({ type: 'transcriber.failed', leg, reason: 'MEDIA_LOST' });
    });
  }

  function detach(callId: string): void {
    const entry = entries.get(callId);
    if (!entry) return;
    entry.onReport = null;
    entry.actor.send({ type: 'talk.over' });
  }

  return {
    async preload() {
      const abort = new AbortController();
      const stream = { streamId: 'expected', onEvent() {}, signal: abort.signal, ...LIVE_RECOGNITION };
      // One for each leg. A recogniser stays loaded for a while after its stream closes.
      await Promise.allSettled([recognition.open(stream), recognition.open(stream)]);
      abort.abort();
    },
    begin(call, onReport) {
      const { callId } = call.row;
      const channels = { agent: new MessageChannel(), customer: new MessageChannel() };
      const concluded = Promise.withResolvers<void>();
      const actor = createActor(machine, { input: { callId }, clock });
      const entry: Entry = {
        actor,
        call,
        onReport,
        late: [],
        session: { stopTap: async (leg) => await call.media?.stopTap(leg) },
        taps: { agent: tapAt(channels.agent, 0), customer: tapAt(channels.customer, 0) },
        concluded: concluded.promise,
        hypotheses: new CallHypotheses((error) => {
          logger.debug({ callId, err: error }, 'a recogniser could not be configured');
        }),
        onHypothesis: (hypothesis) => options.onHypothesis(call, hypothesis),
      };
      entries.set(callId, entry);
      actor.on('said', ({ segment }) => {
        if (entry.onReport === null) entry.late.push(segment);
        else entry.onReport({ type: 'transcript.final', segment });
      });
      actor.on('leg.failed', ({ leg, reason }) => entry.onReport?.({ type: 'transcript.leg_failed', leg, reason }));
      const leave = () => {
        entries.delete(callId);
        concluded.resolve();
      };
      actor.subscribe({
        complete: leave,
        error(error) {
          logger.error({ callId, err: error }, 'transcript actor failed');
          entry.onReport?.({ type: 'transcript.failed', reason: 'INTERNAL' });
          leave();
        },
      });
      call.abort.signal.addEventListener('abort', () => detach(callId), { once: true });
      onReport({ type: 'transcript.started' });
      actor.start();
      startTaps(entry, { agent: channels.agent.port1, customer: channels.customer.port1 });
    },
    join(callId, leg) {
      const entry = entries.get(callId);
      const bridgedAt = entry?.call.journal.bridgedAt();
      if (!entry || !bridgedAt || entry.taps[leg] !== undefined) return;
      if (!entry.actor.getSnapshot().matches({ transcribing: 'listening' })) return;
      const channel = new MessageChannel();
      entry.taps[leg] = tapAt(channel, momentOf(clock).monotonicMs - bridgedAt.monotonicMs);
      entry.actor.send({ type: 'leg.joined', leg });
      startTaps(entry, { [leg]: channel.port1 });
    },
    leave: (callId, leg) => entries.get(callId)?.actor.send({ type: 'leg.left', leg }),
    loseLeg: (callId, leg, reason) => entries.get(callId)?.actor.send({ type: 'transcriber.failed', leg, reason }),
    setHypotheses: (callId, isOn) => entries.get(callId)?.hypotheses.set(isOn),
    finish: (callId) => entries.get(callId)?.actor.send({ type: 'talk.over' }),
    detach,
    stop: (callId, reason) => entries.get(callId)?.actor.send({ type: 'stopped', reason }),
    async close() {
      const open = [...entries.values()];
      for (const { actor } of open) actor.send({ type: 'stopped', reason: 'INTERRUPTED' });
      await within(Promise.all(open.map(({ concluded }) => concluded)), { ms: CLOSE_TIMEOUT_MS, clock });
      for (const { actor } of entries.values()) actor.stop();
      entries.clear();
    },
  };
}

/** The call machine's `transcript` port: transcribes this call while the call takes reports. */
export function transcriptPort({ transcripts, registry, logger }: TranscriptPortOptions) {
  return fromCallback<TranscriptCommand, { callId: string }>(({ input: { callId }, receive, sendBack }) => {
    const send = (report: TranscriptReport) => sendBack(report);
    const call = registry.get(callId);
    try {
      if (!call) throw new Error('only a live call is transcribed');
      transcripts.begin(call, send);
    } catch (error) {
      logger.error({ callId, err: error }, 'transcript could not start');
      send({ type: 'transcript.failed', reason: 'INTERNAL' });
    }
    receive((command) => {
      if (command.type === 'finish') transcripts.finish(callId);
      else if (command.type === 'join') transcripts.join(callId, command.leg);
      else if (command.type === 'leave') transcripts.leave(callId, command.leg);
      else transcripts.loseLeg(callId, command.leg, 'OVERLOADED');
    });
    return () => transcripts.detach(callId);
  });
}

function tapAt({ port2 }: MessageChannel, beganMs: number): Tap {
  return { inlet: port2, beganMs };
}

interface TranscriptPortOptions {
  transcripts: TranscriptDesk;
  registry: CallRegistry;
  logger: Logger;
}
