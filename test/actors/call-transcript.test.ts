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

describe('a call that is transcribed', () => {
  it('tells what each leg said as it is understood, stores and charges it, and hears the last words out', async () => {
    const call = await talk();
    const heard: unknown[] = [];
    call.dialer.watch(call.callId, ({ transcript }) => heard.push(transcript?.text), new AbortController().signal);
    call.recognition.tell('agent', recognised(1, 'good morning'));
    call.recognition.tell('customer', recognised(2, 'hello'));
    call.recognition.tell('customer', recognised(3, ''));
    await call.until('transcript.final', 2);
    await call.hangup();
    await eventually(() => expect(call.listening.sessions.map(({ finished }) => finished)).toEqual([1, 1]));
    call.recognition.tell('agent', recognised(4, 'goodbye'));
    for (const leg of ['agent', 'customer'] as const) call.recognition.tell(leg, { type: 'recognition.ended' });
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
    expect(heard.filter(Boolean)).toEqual(['good morning', 'hello', 'goodbye']);
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

  it('has recognisers loaded while the customer rings, and only when it is to be transcribed', async () => {
    const opened = async (transcribe: boolean) => {
      const call = await placeCallOn({ sql: database.sql }, { transcribe });
      call.agent().tell({ type: 'leg.answered', sipStatus: 200, media: remoteMedia(20_000) });
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

  it('posts its taps to the listeners, from the bridge on, and stops them before the listeners finish', async () => {
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
    for (const leg of ['agent', 'customer'] as const) call.recognition.tell(leg, { type: 'recognition.ended' });
    await call.over();
  });

  it('ends without words that take long, which are in its transcript afterwards', async () => {
    const call = await talk();
    await call.hangup();
    await eventually(() => expect(call.clock.waiting()).toContain(TRANSCRIPT_TIMEOUT_MS));
    call.clock.advance(TRANSCRIPT_TIMEOUT_MS);
    await call.over();
    expect((await call.events()).at(-1)).toMatchObject({ event: 'call.completed', at: NOW });
    expect((await getTranscript(database.sql, call.callId))?.transcript.status).toBe('in_progress');
    call.recognition.tell('customer', recognised(1, 'one more thing'));
    for (const leg of ['agent', 'customer'] as const) call.recognition.tell(leg, { type: 'recognition.ended' });
    await eventually(async () => {
      const stored = await getTranscript(database.sql, call.callId);
      expect(stored?.transcript.status).toBe('completed');
      expect(stored?.segments).toMatchObject([{ text: 'one more thing', eventSequence: null }]);
    });
    expect((await call.events()).at(-1)).toMatchObject({ event: 'call.completed' });
  });

  it('keeps text that no database takes out of it', async () => {
    const call = await talk();
    call.recognition.tell('agent', recognised(1, 'nul \0 and half \ud83d'));
    await call.until('transcript.final');
    expect((await call.events()).at(-1)?.segment?.text).toBe('nul  and half \ufffd');
    await call.end();
  });
});

describe('a third party of a call that is transcribed', () => {
  it('is transcribed from the time it joins until it leaves, with times since the bridge', async () => {
    const call = await talkWithThirdParty();
    expect(call.mediaPlane.session.log).toContain(`tap ${call.thirdParty}`);
    call.recognition.tell(call.thirdParty, recognised(1, 'may I'));
    await call.until('transcript.final');
    const role = 'party';
    expect((await call.events()).at(-1)).toMatchObject({ leg: null, data: { leg_id: call.thirdParty, role } });
    call.sip.legs[2]!.tell({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' });
    await call.until('leg.left');
    await eventually(() => expect(call.listening.sessions.map(({ finished }) => finished)).toEqual([0, 0, 1]));
    call.recognition.tell(call.thirdParty, recognised(2, 'goodbye'));
    await call.until('transcript.final', 2);
    call.recognition.tell(call.thirdParty, { type: 'recognition.ended' });
    call.recognition.tell('agent', recognised(30, 'he is gone'));
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

  it('is no longer transcribed after a fault of its own, while the two others still are', async () => {
    const call = await talkWithThirdParty();
    call.recognition.tell(call.thirdParty, { type: 'recognition.overloaded', lagMs: 9_000 });
    await call.until('transcript.leg_failed');
    expect((await call.events()).at(-1)).toMatchObject({ detail: 'OVERLOADED', data: { leg_id: call.thirdParty } });
    call.recognition.tell('customer', recognised(20, 'hello'));
    await call.until('transcript.final');
    await call.end();
    expect((await getTranscript(database.sql, call.callId))?.transcript.status).toBe('completed');
  });

  it('is listened to until its last words when the call ends first', async () => {
    const call = await talkWithThirdParty();
    await call.hangup();
    await eventually(() => expect(call.listening.sessions.map(({ finished }) => finished)).toEqual([1, 1, 1]));
    call.recognition.tell(call.thirdParty, recognised(1, 'wait'));
    for (const leg of ['agent', 'customer', call.thirdParty]) call.recognition.tell(leg, { type: 'recognition.ended' });
    await call.over();
    expect((await getTranscript(database.sql, call.callId))?.segments).toMatchObject([{ text: 'wait' }]);
  });
});

describe('a transcript that fails', () => {
  const faults: [string, string, (call: Talk) => void][] = [
    ['OVERLOADED', 'the engine cannot keep up', tellAgent({ type: 'recognition.overloaded', lagMs: 9_000 })],
    [
      'STT_UPSTREAM_UNAVAILABLE',
      'no engine can do it',
      tellAgent({
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
      'the listening worker does not keep up with the tap',
      (call) => call.mediaPlane.session.options.onEvent({ type: 'tap.overrun', leg: 'agent' }),
    ],
  ];
  for (const [reason, cause, happen] of faults) {
    it(`tells ${reason} when ${cause}, keeps what was understood, and the call goes on`, async () => {
      const call = await talk();
      call.recognition.tell('agent', recognised(1, 'good morning'));
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

  it('tells why nobody listens, and the call goes on', async () => {
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

  it('stops when the wallet does not cover what was said, once, and the call goes on', async () => {
    // 135 s of the call are held; 0.00015 USD are left for 1.5 s of speech.
    const call = await talk({ balanceNano: 135_150_000n });
    call.recognition.tell('agent', recognised(1, 'paid'));
    await call.until('transcript.final');
    call.recognition.tell('agent', recognised(2, 'unpaid'));
    call.recognition.tell('agent', recognised(3, 'unpaid too'));
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

  it('is stored as interrupted when the server stops, and when it was killed', async () => {
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

describe('what was said while storage is away', () => {
  it('is told once, charged once, in order, when it is back', async () => {
    let isAway = false;
    const actorsSql = sqlWithFaults(database.sql, async (run) => {
      const result = await run();
      // The answer is lost: it was stored all the same.
      if (isAway) throw new Error('storage is away');
      return result;
    });
    const call = await talk({ actorsSql });
    isAway = true;
    call.recognition.tell('agent', recognised(1, 'one'));
    call.recognition.tell('agent', recognised(2, 'two'));
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

/** A bridged call whose legs are both listened to. */
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
    /** Hung up, and nothing more was said. */
    async end() {
      await call.hangup();
      for (const { options: stream } of call.recognition.streams) {
        if (!stream.signal.aborted) stream.onEvent({ type: 'recognition.ended' });
      }
      await call.over();
    },
  };
}

/** A third party has joined ten seconds after the bridge, and is listened to. */
async function talkWithThirdParty() {
  const call = await talk();
  call.clock.advance(10_000);
  const thirdParty = await call.addThirdParty();
  await eventually(() => expect(call.listening.sessions).toHaveLength(3));
  return { ...call, thirdParty };
}

function tellAgent(event: Parameters<Talk['recognition']['tell']>[1]) {
  return (call: Talk) => call.recognition.tell('agent', event);
}
