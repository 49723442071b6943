import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { presentTranscript } from '../../actors/call-view.ts';
import { TRANSCRIPT_TIMEOUT_MS } from '../../machines/call-setup.ts';
import { TandemError } from '../../machines/errors.ts';
import { walletOf } from '../../storage/ledger.ts';
import { getCallById, listCallEvents } from '../../storage/queries/calls.ts';
import { failAbandonedTranscripts, getTranscript } from '../../storage/queries/transcripts.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { eventually } from '../eventually.ts';
import { later, NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import type { DialerOptions } from './dialer-fixture.ts';
import { quiet, remoteMedia, sqlWithFaults } from './fakes.ts';
import { placeCallOn } from './placed-call.ts';
import { recognised } from './transcript-fakes.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 20 });
});
afterAll(() => database.drop());

describe('transcribed call', () => {
  it('reports, stores and charges each utterance, and waits for the last ones', async () => {
    const call = await talk();
    const received: unknown[] = [];
    call.dialer.watch(call.callId, ({ transcript }) => received.push(transcript?.text), new AbortController().signal);
    call.recognition.emit('agent', recognised(1, 'good morning'));
    call.recognition.emit('customer', recognised(2, 'hello'));
    call.recognition.emit('customer', recognised(3, ''));
    await call.until('transcript.final', 2);
    await call.hangup();
    await eventually(() => expect(call.listening.sessions.map(({ finished }) => finished)).toEqual([1, 1]));
    call.recognition.emit('agent', recognised(4, 'goodbye'));
    for (const leg of ['agent', 'customer'] as const) call.recognition.emit(leg, { type: 'recognition.ended' });
    await call.over();

    const events = await call.events();
    expect(events.slice(7).map(({ event, leg, segment }) => [event, leg, segment?.text ?? null])).toEqual([
      ['transcript.started', null, null],
      ['transcript.final', 'agent', 'good morning'],
      ['transcript.final', 'customer', 'hello'],
      ['transcript.final', 'agent', 'goodbye'],
      ['call.completed', 'agent', null],
    ]);
    expect(events[8]?.segment).toEqual({ text: 'good morning', startMs: 1_000, endMs: 2_000, confidence: 0.9 });
    expect(received.filter(Boolean)).toEqual(['good morning', 'hello', 'goodbye']);
    const stored = await getTranscript(database.sql, call.callId);
    expect(stored?.transcript).toMatchObject({ status: 'completed', error: null });
    expect(stored?.segments.map(({ leg, text, eventSequence }) => [leg, text, eventSequence])).toEqual([
      ['agent', 'good morning', 9],
      ['customer', 'hello', 10],
      ['agent', 'goodbye', 11],
    ]);
    expect(stored?.segments[0]?.words[1]).toEqual({ word: 'morning', startMs: 1_000, endMs: 2_000, confidence: 0.9 });
    const { rows } = await listUsage(database.sql, { workspaceId: call.caller.workspaceId }, { page: 1, limit: 10 });
    const speech = rows.filter(({ service }) => service === 'stt');
    expect(speech.map(({ operation, amountNano }) => [operation, amountNano])).toEqual(
      Array(3).fill(['call_transcript', 100_000n]),
    );
    expect(call.recognition.streams.every(({ options }) => options.signal.aborted)).toBe(true);
    expect(call.clock.waiting()).toEqual([]);
  });

  it('reports hypotheses only while requested, without extra recognition', async () => {
    const call = await talk();
    const changes = () => call.recognition.streams.map((stream) => stream.changes);
    const said = (text: string, words: { startMs: number; endMs: number }[]) => {
      const received = words.map((times) => ({
        word: text,
        ...times,
        confidence: null,
        speaker: null,
        original: null,
      }));
      const event = {
        type: 'utterance.hypothesis',
        utteranceId: 1,
        channel: 0,
        text,
        words: received,
        lagMs: 0,
      } as const;
      call.recognition.emit('agent', event);
    };
    said('too early', []);
    call.transcripts.setHypotheses(call.callId, true);
    call.transcripts.setHypotheses(call.callId, true);
    call.transcripts.setHypotheses('no such call', true);
    said('good\0', [
      { startMs: 100, endMs: 300 },
      { startMs: 300, endMs: 400 },
    ]);
    said('good mor', []);
    call.transcripts.setHypotheses(call.callId, false);
    said('too late', []);
    expect(call.hypotheses).toEqual([
      { leg: 'agent', text: 'good', startMs: 100, endMs: 400 },
      { leg: 'agent', text: 'good mor', startMs: null, endMs: null },
    ]);
    // Preloaded streams have no subscriber.
    const switched = [{ hypothesisEveryMs: 500 }, { hypothesisEveryMs: null }];
    expect(changes().filter((each) => each.length > 0)).toEqual([switched, switched]);
    await call.end();
  });

  it('preloads recognisers while the customer rings, only for transcribed calls', async () => {
    const opened = async (transcribe: boolean) => {
      const call = await placeCallOn({ sql: database.sql }, { transcribe });
      call.agent().emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia(20_000) });
      await eventually(() => expect(call.sip.legs).toHaveLength(2));
      await quiet();
      const { streams } = call.recognition;
      expect(streams.every(({ options }) => options.signal.aborted)).toBe(true);
      await call.hangup();
      await call.over();
      return streams.length;
    };
    expect(await opened(true)).toBe(2);
    expect(await opened(false)).toBe(0);
  });

  it('sends its taps to the listeners from the bridge on, and stops them before the listeners finish', async () => {
    const call = await talk();
    const { session } = call.mediaPlane;
    expect(session.log).toContain('tap agent customer');
    session.taps.customer!.postMessage('said');
    const { inlet, format } = call.listening.sessions[1]!.options;
    expect(await new Promise((resolve) => inlet?.once('message', resolve))).toBe('said');
    expect(format).toEqual({ encoding: 'linear16', sampleRateHz: 8000, channels: 1 });
    const stopping = Promise.withResolvers<void>();
    session.onCommand = (command) => (command.startsWith('stop tap') ? stopping.promise : undefined);
    await call.hangup();
    await eventually(() =>
      expect(session.log).toEqual(expect.arrayContaining(['stop tap agent', 'stop tap customer'])),
    );
    await quiet();
    expect(call.listening.sessions.map(({ finished }) => finished)).toEqual([0, 0]);
    stopping.resolve();
    await eventually(() => expect(call.listening.sessions.map(({ finished }) => finished)).toEqual([1, 1]));
    for (const leg of ['agent', 'customer'] as const) call.recognition.emit(leg, { type: 'recognition.ended' });
    await call.over();
  });

  it('ends without waiting for late utterances, which still reach its transcript', async () => {
    const call = await talk();
    await call.hangup();
    await eventually(() => expect(call.clock.waiting()).toContain(TRANSCRIPT_TIMEOUT_MS));
    call.clock.advance(TRANSCRIPT_TIMEOUT_MS);
    await call.over();
    expect((await call.events()).at(-1)).toMatchObject({ event: 'call.completed', at: NOW });
    expect((await getTranscript(database.sql, call.callId))?.transcript.status).toBe('in_progress');
    call.recognition.emit('customer', recognised(1, 'one more thing'));
    for (const leg of ['agent', 'customer'] as const) call.recognition.emit(leg, { type: 'recognition.ended' });
    await eventually(async () => {
      const stored = await getTranscript(database.sql, call.callId);
      expect(stored?.transcript.status).toBe('completed');
      expect(stored?.segments).toMatchObject([{ text: 'one more thing', eventSequence: null }]);
    });
    expect((await call.events()).at(-1)).toMatchObject({ event: 'call.completed' });
  });

  it('removes characters that the database rejects', async () => {
    const call = await talk();
    call.recognition.emit('agent', recognised(1, 'nul \0 and half \ud83d'));
    await call.until('transcript.final');
    expect((await call.events()).at(-1)?.segment?.text).toBe('nul  and half \ufffd');
    await call.end();
  });
});

describe('third party of a transcribed call', () => {
  it('gets transcribed while it is joined, with times since the bridge', async () => {
    const call = await talkWithThirdParty();
    expect(call.mediaPlane.session.log).toContain(`tap ${call.thirdParty}`);
    call.recognition.emit(call.thirdParty, recognised(1, 'may I'));
    await call.until('transcript.final');
    const role = 'party';
    expect((await call.events()).at(-1)).toMatchObject({ leg: null, data: { leg_id: call.thirdParty, role } });
    call.sip.legs[2]!.emit({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' });
    await call.until('leg.left');
    await eventually(() => expect(call.listening.sessions.map(({ finished }) => finished)).toEqual([0, 0, 1]));
    call.recognition.emit(call.thirdParty, recognised(2, 'goodbye'));
    await call.until('transcript.final', 2);
    call.recognition.emit(call.thirdParty, { type: 'recognition.ended' });
    call.recognition.emit('agent', recognised(30, 'he is gone'));
    await call.until('transcript.final', 3);
    await call.end();
    const stored = await getTranscript(database.sql, call.callId);
    expect(stored?.transcript).toMatchObject({ status: 'completed', error: null });
    expect(stored?.segments.map(({ leg, text, startMs }) => [leg, text, startMs])).toEqual([
      [call.thirdParty, 'may I', 11_000],
      [call.thirdParty, 'goodbye', 12_000],
      ['agent', 'he is gone', 30_000],
    ]);
    expect(stored?.segments[0]?.words[0]).toMatchObject({ startMs: 11_000, endMs: 12_000 });
    const row = (await getCallById(database.sql, call.callId))!;
    expect(presentTranscript(row, stored).segments.map((segment) => segment.role)).toEqual(['party', 'party', 'agent']);
  });

  it('stops being transcribed after its own failure, without affecting the others', async () => {
    const call = await talkWithThirdParty();
    call.recognition.emit(call.thirdParty, { type: 'recognition.overloaded', lagMs: 9_000 });
    await call.until('transcript.leg_failed');
    expect((await call.events()).at(-1)).toMatchObject({ detail: 'OVERLOADED', data: { leg_id: call.thirdParty } });
    call.recognition.emit('customer', recognised(20, 'hello'));
    await call.until('transcript.final');
    await call.end();
    expect((await getTranscript(database.sql, call.callId))?.transcript.status).toBe('completed');
  });

  it('gets its last utterance transcribed when the call ends first', async () => {
    const call = await talkWithThirdParty();
    await call.hangup();
    await eventually(() => expect(call.listening.sessions.map(({ finished }) => finished)).toEqual([1, 1, 1]));
    call.recognition.emit(call.thirdParty, recognised(1, 'wait'));
    for (const leg of ['agent', 'customer', call.thirdParty]) call.recognition.emit(leg, { type: 'recognition.ended' });
    await call.over();
    expect((await getTranscript(database.sql, call.callId))?.segments).toMatchObject([{ text: 'wait' }]);
  });
});

describe('failing transcript', () => {
  const faults: [string, string, (call: Talk) => void][] = [
    ['OVERLOADED', 'the engine cannot keep up', emitForAgent({ type: 'recognition.overloaded', lagMs: 9_000 })],
    [
      'STT_UPSTREAM_UNAVAILABLE',
      'no engine is available',
      emitForAgent({
        type: 'recognition.failed',
        code: 'STT_UPSTREAM_UNAVAILABLE',
        message: 'gone',
        retryAfterS: null,
      }),
    ],
    [
      'LISTENING_LOST',
      'the listening worker dies',
      (call) => call.listening.sessions[0]?.options.onEvent({ type: 'listening.lost', detail: 'died' }),
    ],
    [
      'OVERLOADED',
      'the listening worker falls behind the tap',
      (call) => call.mediaPlane.session.options.onEvent({ type: 'tap.overrun', leg: 'agent' }),
    ],
  ];
  for (const [reason, cause, happen] of faults) {
    it(`reports ${reason} when ${cause}, keeps earlier utterances, and the call continues`, async () => {
      const call = await talk();
      call.recognition.emit('agent', recognised(1, 'good morning'));
      await call.until('transcript.final');
      happen(call);
      await call.until('transcript.failed');
      expect((await call.events()).at(-1)).toMatchObject({ detail: reason, state: 'bridged' });
      expect(await getTranscript(database.sql, call.callId)).toMatchObject({
        transcript: { status: 'failed', error: reason },
        segments: [{ text: 'good morning' }],
      });
      expect(call.recognition.streams.every(({ options }) => options.signal.aborted)).toBe(true);
      await call.end();
      expect((await getCallById(database.sql, call.callId))?.state).toBe('completed');
    });
  }

  it('reports why listening failed, and the call continues', async () => {
    const refusals: [string, (call: Talk) => void][] = [
      [
        'SHUTTING_DOWN',
        ({ recognition }) => {
          recognition.onOpen = () => {
            throw new TandemError('SHUTTING_DOWN', 'not now');
          };
        },
      ],
      [
        'INTERNAL',
        ({ listening }) => {
          listening.onOpen = () => {
            throw new Error('a secret');
          };
        },
      ],
      [
        'MEDIA_LOST',
        ({ mediaPlane }) => {
          mediaPlane.session.onCommand = (command) => {
            if (command.startsWith('tap')) throw new Error('the worker is gone');
          };
        },
      ],
    ];
    for (const [reason, prepare] of refusals) {
      const call = await placeCallOn({ sql: database.sql }, { transcribe: true });
      prepare(call);
      await call.bridge();
      await eventually(async () => {
        const events = await listCallEvents(database.sql, { callId: call.callId });
        expect(events.at(-1)).toMatchObject({ event: 'transcript.failed', detail: reason });
      });
      await call.hangup();
      await call.over();
    }
  });

  it('stops once when the wallet runs dry, and the call continues', async () => {
    // The call holds 135 s, which leaves 0.00015 USD for 1.5 s of speech.
    const call = await talk({ balanceNano: 135_150_000n });
    call.recognition.emit('agent', recognised(1, 'paid'));
    await call.until('transcript.final');
    call.recognition.emit('agent', recognised(2, 'unpaid'));
    call.recognition.emit('agent', recognised(3, 'unpaid too'));
    await call.until('transcript.failed');
    await eventually(() => expect(call.recognition.streams.every(({ options }) => options.signal.aborted)).toBe(true));
    const events = (await call.events()).slice(7);
    expect(events.map(({ event, detail }) => [event, detail])).toEqual([
      ['transcript.started', null],
      ['transcript.final', null],
      ['transcript.failed', 'INSUFFICIENT_FUNDS'],
    ]);
    expect(await getTranscript(database.sql, call.callId)).toMatchObject({
      transcript: { error: 'INSUFFICIENT_FUNDS' },
      segments: [{ text: 'paid' }],
    });
    expect(await walletOf(database.sql, call.caller.workspaceId)).toMatchObject({ availableNano: 50_000n });
    await call.end();
    expect((await call.events()).filter(({ event }) => event === 'transcript.failed')).toHaveLength(1);
  });

  it('becomes interrupted when the server stops or dies', async () => {
    const stopped = await talk();
    await stopped.transcripts.close();
    await stopped.until('transcript.failed');
    expect((await stopped.events()).at(-1)?.detail).toBe('INTERRUPTED');
    await stopped.end();

    const killed = await talk();
    await killed.hangup();
    await eventually(() => expect(killed.clock.waiting()).toContain(TRANSCRIPT_TIMEOUT_MS));
    killed.clock.advance(TRANSCRIPT_TIMEOUT_MS);
    await killed.over();
    await failAbandonedTranscripts(database.sql, {
      lost: { node: 'node-1', exceptBoot: 'the next boot' },
      callIds: [],
      now: later(1),
    });
    expect((await getTranscript(database.sql, killed.callId))?.transcript).toMatchObject({
      status: 'failed',
      error: 'INTERRUPTED',
    });
  });
});

describe('utterances during a storage failure', () => {
  it('arrive, count and cost once, in order, when storage returns', async () => {
    let isAway = false;
    const actorsSql = sqlWithFaults(database.sql, async (run) => {
      const result = await run();
      // The commit succeeded, only its response is lost.
      if (isAway) throw new Error('storage is away');
      return result;
    });
    const call = await talk({ actorsSql });
    isAway = true;
    call.recognition.emit('agent', recognised(1, 'one'));
    call.recognition.emit('agent', recognised(2, 'two'));
    await eventually(() => expect(call.clock.waiting()).toContain(50));
    isAway = false;
    call.clock.advance(50);
    await call.until('transcript.final', 2);
    expect((await call.events()).slice(8).map(({ segment }) => segment?.text)).toEqual(['one', 'two']);
    const { rows } = await listUsage(database.sql, { workspaceId: call.caller.workspaceId }, { page: 1, limit: 10 });
    expect(rows).toHaveLength(2);
    await call.end();
  });
});

type Talk = Awaited<ReturnType<typeof placeCallOn>>;

/** A bridged call with listeners on both legs. */
async function talk(options: Partial<DialerOptions> = {}) {
  const call = await placeCallOn({ sql: database.sql, ...options }, { transcribe: true });
  await call.bridge();
  await eventually(() => expect(call.listening.sessions).toHaveLength(2));
  const events = () => listCallEvents(database.sql, { callId: call.callId });
  return {
    ...call,
    events,
    until: (name: string, times = 1) =>
      eventually(async () => expect((await events()).filter(({ event }) => event === name)).toHaveLength(times)),
    /** Hangs up without further utterances. */
    async end() {
      await call.hangup();
      for (const { options: stream } of call.recognition.streams) {
        if (!stream.signal.aborted) stream.onEvent({ type: 'recognition.ended' });
      }
      await call.over();
    },
  };
}

/** A call whose third party joined ten seconds after the bridge. */
async function talkWithThirdParty() {
  const call = await talk();
  call.clock.advance(10_000);
  const thirdParty = await call.addThirdParty();
  await eventually(() => expect(call.listening.sessions).toHaveLength(3));
  return { ...call, thirdParty };
}

function emitForAgent(event: Parameters<Talk['recognition']['emit']>[1]) {
  return (call: Talk) => call.recognition.emit('agent', event);
}
