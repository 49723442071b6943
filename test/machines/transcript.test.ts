import { describe, expect, it } from 'vitest';
import { createActor, fromCallback, fromPromise, SimulatedClock } from 'xstate';
import type { CallSegment, LegId } from '../../machines/events.ts';
import {
  type ConcludeInput,
  LAST_WORDS_PATIENCE_MS,
  type TranscriberCommand,
  type TranscriberInput,
  type TranscriberReport,
  type TranscriptEvent,
  transcriptMachine,
} from '../../machines/transcript.machine.ts';
import { testEachCell } from './state-table.ts';

const PATHS = {
  listening: [],
  finishing: ['talk.over'],
  storing: ['stopped'],
  waiting: ['stopped', 'store failed'],
  concluded: ['stopped', 'stored'],
} as const;

const EVENTS: Record<string, TranscriptEvent> = {
  'transcriber.segment': { type: 'transcriber.segment', segment: segment('agent') },
  'transcriber.ended': { type: 'transcriber.ended', leg: 'agent' },
  'transcriber.failed': { type: 'transcriber.failed', leg: 'agent', reason: 'OVERLOADED' },
  'leg.joined': { type: 'leg.joined', leg: 'leg_1' },
  'leg.left': { type: 'leg.left', leg: 'leg_1' },
  'talk.over': { type: 'talk.over' },
  stopped: { type: 'stopped', reason: 'INSUFFICIENT_FUNDS' },
};

const HAPPENINGS = [...Object.keys(EVENTS), 'stored', 'store failed', 'half a minute passes'] as const;

const TABLE: Record<keyof typeof PATHS, Partial<Record<(typeof HAPPENINGS)[number], string>>> = {
  listening: { 'transcriber.failed': 'storing', 'talk.over': 'finishing', stopped: 'storing' },
  finishing: { 'transcriber.failed': 'storing', stopped: 'storing', 'half a minute passes': 'storing' },
  storing: { stored: 'concluded', 'store failed': 'waiting' },
  waiting: { 'half a minute passes': 'storing' },
  concluded: {},
};

describe('transcript machine, state by event', () => {
  testEachCell({ paths: PATHS, table: TABLE, happenings: HAPPENINGS, start: startTranscript });
});

describe('transcript', () => {
  it('emits utterances of both legs, even those recognised after the conversation', async () => {
    const transcript = startTranscript();
    expect([...transcript.listeners.keys()]).toEqual(['agent', 'customer']);
    transcript.report('agent', { type: 'transcriber.segment', segment: segment('agent', 'hello') });
    await transcript.take('talk.over');
    transcript.report('customer', { type: 'transcriber.segment', segment: segment('customer', 'goodbye') });
    expect(transcript.said).toEqual(['agent: hello', 'customer: goodbye']);
  });

  it('completes once both listeners have ended', async () => {
    const transcript = startTranscript();
    await transcript.take('talk.over');
    expect(transcript.finished).toEqual(['agent', 'customer']);
    transcript.report('agent', { type: 'transcriber.ended', leg: 'agent' });
    expect(transcript.state()).toBe('finishing');
    transcript.report('customer', { type: 'transcriber.ended', leg: 'customer' });
    await transcript.take('stored');
    expect(transcript.concluded).toEqual([{ callId: 'call-1', error: null }]);
    expect(transcript.state()).toBe('concluded');
  });

  it('finishes only listeners that have not ended', async () => {
    const transcript = startTranscript();
    transcript.report('agent', { type: 'transcriber.ended', leg: 'agent' });
    await transcript.take('talk.over');
    expect(transcript.finished).toEqual(['customer']);
  });

  it('fails when the listener of a leg fails, and closes the other one', async () => {
    const transcript = startTranscript();
    transcript.report('customer', { type: 'transcriber.failed', leg: 'customer', reason: 'OVERLOADED' });
    await transcript.take('stored');
    expect(transcript.concluded).toEqual([{ callId: 'call-1', error: 'OVERLOADED' }]);
    expect(transcript.listeners.size).toBe(0);
  });

  it('listens to a third party until it leaves, and waits for that listener', async () => {
    const transcript = startTranscript();
    await transcript.take('leg.joined');
    await transcript.take('leg.joined');
    expect([...transcript.listeners.keys()]).toEqual(['agent', 'customer', 'leg_1']);
    await transcript.take('leg.left');
    expect(transcript.finished).toEqual(['leg_1']);
    await transcript.take('talk.over');
    for (const leg of ['agent', 'customer']) transcript.report(leg, { type: 'transcriber.ended', leg });
    expect(transcript.state()).toBe('finishing');
    transcript.report('leg_1', { type: 'transcriber.segment', segment: segment('leg_1', 'goodbye') });
    transcript.report('leg_1', { type: 'transcriber.ended', leg: 'leg_1' });
    expect([transcript.said, transcript.state()]).toEqual([['leg_1: goodbye'], 'storing']);
  });

  it('continues without a third party whose listener fails, and reports that', async () => {
    const transcript = startTranscript();
    await transcript.take('leg.joined');
    transcript.report('leg_1', { type: 'transcriber.failed', leg: 'leg_1', reason: 'OVERLOADED' });
    expect(transcript.failed).toEqual(['leg_1: OVERLOADED']);
    expect([...transcript.listeners.keys()]).toEqual(['agent', 'customer']);
    expect(transcript.state()).toBe('listening');
  });

  it('opens no listener for a party that joins after the conversation', async () => {
    const transcript = startTranscript();
    await transcript.take('talk.over');
    await transcript.take('leg.joined');
    expect([...transcript.listeners.keys()]).toEqual(['agent', 'customer']);
  });

  it('gives up waiting for late utterances', async () => {
    const transcript = startTranscript();
    await transcript.take('talk.over');
    await transcript.take('half a minute passes');
    await transcript.take('stored');
    expect(transcript.concluded).toEqual([{ callId: 'call-1', error: 'OVERLOADED' }]);
  });
});

function startTranscript() {
  const clock = new SimulatedClock();
  const listeners = new Map<LegId, (report: TranscriberReport) => void>();
  const finished: LegId[] = [];
  const failed: string[] = [];
  const said: string[] = [];
  const concluded: ConcludeInput[] = [];
  let storing: PromiseWithResolvers<void> | null = null;
  const actor = createActor(
    transcriptMachine.provide({
      actors: {
        transcriber: fromCallback<TranscriberCommand, TranscriberInput>(({ input: { leg }, receive, sendBack }) => {
          listeners.set(leg, sendBack);
          receive(() => finished.push(leg));
          return () => void listeners.delete(leg);
        }),
        conclude: fromPromise<void, ConcludeInput>(async ({ input }) => {
          concluded.push(input);
          storing = Promise.withResolvers<void>();
          await storing.promise;
        }),
      },
    }),
    { clock, input: { callId: 'call-1' } },
  );
  actor.on('said', ({ segment: { leg, text } }) => said.push(`${leg}: ${text}`));
  actor.on('leg.failed', ({ leg, reason }) => failed.push(`${leg}: ${reason}`));
  actor.start();
  return {
    listeners,
    failed,
    finished,
    said,
    concluded,
    report: (leg: LegId, report: TranscriberReport) => listeners.get(leg)?.(report),
    async take(happening: string) {
      const event = EVENTS[happening];
      if (event) actor.send(event);
      else if (happening === 'stored') storing?.resolve();
      else if (happening === 'store failed') storing?.reject(new Error('storage away'));
      else clock.increment(LAST_WORDS_PATIENCE_MS);
      await new Promise<void>((resolve) => setImmediate(resolve));
    },
    state: () => innermostState(actor.getSnapshot().value),
  };
}

function innermostState(value: unknown): string {
  return typeof value === 'string' ? value : innermostState(Object.values(value as object)[0]);
}

function segment(leg: LegId, text = 'hello'): CallSegment {
  return { leg, utteranceId: 1, text, language: 'en', startMs: 0, endMs: 900, confidence: 0.9, words: [] };
}
