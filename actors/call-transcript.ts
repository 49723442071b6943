import { MessageChannel } from 'node:worker_threads';
import { type ActorRefFrom, createActor, fromCallback, fromPromise } from 'xstate';
import type { TranscriptCommand, TranscriptReport } from '../machines/call-events.ts';
import type { CallSegment } from '../machines/events.ts';
import { transcriptMachine } from '../machines/transcript.machine.ts';
import type { ListeningPlane } from '../media/listening-plane.ts';
import type { Clock } from '../runtime/clock.ts';
import { within } from '../runtime/waiting.ts';
import type { SpeechRecognition } from '../speech/speech-recognition.ts';
import type { Sql } from '../storage/database.ts';
import { concludeTranscript } from '../storage/queries/transcripts.ts';
import { earPort, LIVE_RECOGNITION, type Tapped } from './call-ear.ts';
import type { CallJournal } from './call-journal.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import type { Logger } from './logger.ts';

/**
 * Transcribes live calls, one actor each. A transcript may outlive its call by what takes long to be understood: until
 * the call's last event it tells the call, which tells everybody; what comes later is only stored.
 */
export interface TranscriptDesk {
  /** A call is about to be bridged: has recognisers loaded meanwhile, so that its first words need not wait. */
  expect(): Promise<void>;
  /** Taps both legs of a bridged call and listens to them. Never throws. */
  begin(call: LiveCall, tell: (report: TranscriptReport) => void): void;
  /** The talk is over: what was said is still awaited. Idempotent. */
  finish(callId: string): void;
  /** The call is told no more; it is over, or so its signal says. Idempotent. */
  detach(callId: string): void;
  /** Ends a transcript as failed, for a reason that is a code. Idempotent. */
  stop(callId: string, reason: string): void;
  /** Stops all, and waits a moment for them to be stored. */
  close(): Promise<void>;
}

export interface TranscriptDeskOptions {
  sql: Sql;
  listening: ListeningPlane;
  recognition: SpeechRecognition;
  clock: Clock;
  logger: Logger;
}

interface Entry extends Tapped {
  actor: ActorRefFrom<typeof transcriptMachine>;
  journal: CallJournal;
  /** Null once the call has heard its last of it. */
  tell: ((report: TranscriptReport) => void) | null;
  /** What was understood since then. */
  late: CallSegment[];
  concluded: Promise<void>;
}

const CLOSE_TIMEOUT_MS = 2_000;

export function createTranscriptDesk(options: TranscriptDeskOptions): TranscriptDesk {
  const { sql, recognition, clock, logger } = options;
  const entries = new Map<string, Entry>();
  const machine = transcriptMachine.provide({
    actors: {
      ear: earPort({ ...options, tappedOf: (callId) => entries.get(callId) }),
      conclude: fromPromise(async ({ input: { callId, error } }) => {
        const entry = entries.get(callId);
        if (!entry) return;
        // Its event fails the transcript where it is stored.
        if (entry.tell !== null && error !== null) return entry.tell({ type: 'transcript.failed', reason: error });
        await entry.journal.drained();
        await concludeTranscript(sql, { callId, late: entry.late, error, now: new Date(clock.now()) });
        entry.tell?.({ type: 'transcript.ended' });
      }),
    },
  });

  function tap(call: LiveCall, entry: Entry, channels: Record<'agent' | 'customer', MessageChannel>): void {
    const { callId } = call.row;
    const ports = { agent: channels.agent.port1, customer: channels.customer.port1 };
    const started = call.media?.startTap(ports) ?? Promise.reject(new Error('the call has no media'));
    started.catch((error) => {
      logger.warn({ callId, err: error }, 'call audio could not be tapped');
      entry.actor.send({ type: 'stopped', reason: 'MEDIA_LOST' });
    });
  }

  function detach(callId: string): void {
    const entry = entries.get(callId);
    if (!entry) return;
    entry.tell = null;
    entry.actor.send({ type: 'talk.over' });
  }

  return {
    async expect() {
      const abort = new AbortController();
      const stream = { streamId: 'expected', onEvent() {}, signal: abort.signal, ...LIVE_RECOGNITION };
      // One for each leg; a recogniser stays loaded for a while after its stream is closed.
      await Promise.allSettled([recognition.open(stream), recognition.open(stream)]);
      abort.abort();
    },
    begin(call, tell) {
      const { callId } = call.row;
      const channels = { agent: new MessageChannel(), customer: new MessageChannel() };
      const concluded = Promise.withResolvers<void>();
      const actor = createActor(machine, { input: { callId }, clock });
      const entry: Entry = {
        actor,
        journal: call.journal,
        tell,
        late: [],
        session: { stopTap: async () => await call.media?.stopTap() },
        inlets: { agent: channels.agent.port2, customer: channels.customer.port2 },
        concluded: concluded.promise,
      };
      entries.set(callId, entry);
      actor.on('said', ({ segment }) => {
        if (entry.tell === null) entry.late.push(segment);
        else entry.tell({ type: 'transcript.final', segment });
      });
      const leave = () => {
        entries.delete(callId);
        concluded.resolve();
      };
      actor.subscribe({
        complete: leave,
        error(error) {
          logger.error({ callId, err: error }, 'transcript actor failed');
          entry.tell?.({ type: 'transcript.failed', reason: 'INTERNAL' });
          leave();
        },
      });
      call.abort.signal.addEventListener('abort', () => detach(callId), { once: true });
      tell({ type: 'transcript.started' });
      actor.start();
      tap(call, entry, channels);
    },
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

/** The call machine's `transcript` port: the desk's transcript of this call, for as long as the call can be told. */
export function transcriptPort({ transcripts, registry, logger }: TranscriptPortOptions) {
  return fromCallback<TranscriptCommand, { callId: string }>(({ input: { callId }, receive, sendBack }) => {
    const tell = (report: TranscriptReport) => sendBack(report);
    const call = registry.get(callId);
    try {
      if (!call) throw new Error('only a live call is transcribed');
      transcripts.begin(call, tell);
    } catch (error) {
      logger.error({ callId, err: error }, 'transcript could not start');
      tell({ type: 'transcript.failed', reason: 'INTERNAL' });
    }
    receive((command) => {
      if (command.type === 'finish') transcripts.finish(callId);
      else transcripts.stop(callId, 'OVERLOADED');
    });
    return () => transcripts.detach(callId);
  });
}

interface TranscriptPortOptions {
  transcripts: TranscriptDesk;
  registry: CallRegistry;
  logger: Logger;
}
