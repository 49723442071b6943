import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PlaceCallRequest } from '../../actors/dialer.ts';
import { reconcile } from '../../actors/reconcile.ts';
import { TandemError } from '../../machines/errors.ts';
import { SynthesizerError } from '../../speech/synthesizer.ts';
import { heldBy, walletOf } from '../../storage/ledger.ts';
import { setPrice } from '../../storage/price-book.ts';
import { getCallById, listCallEvents } from '../../storage/queries/calls.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { eventually } from '../eventually.ts';
import { recordMoves } from '../storage/record-moves.ts';
import { later, NOW, USD } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { type DialerOptions, openDialer } from './dialer-fixture.ts';
import { createFakeDeliverer, createFakeDesk, createTestLogger, FakeSip, quiet, remoteMedia } from './fakes.ts';
import { placeCallOn } from './placed-call.ts';
import { seedCaller } from './seeds.ts';
import { FakeSpeech } from './speech-fakes.ts';

const ANNOUNCE = 'Call from Asha Rao on +919810000077.';
const WHISPER = 'She called twice today.';
const CHARACTER_NANO = 15_000n;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 20 });
});
afterAll(() => database.drop());

describe('speech to the agent of a call', () => {
  it('plays the announcement, then the whisper, and charges each once', async () => {
    const call = await placeCall({ announce: ANNOUNCE, whisper: WHISPER });
    expect(await heldBy(database.sql, (await call.row()).holdId!)).toBe(
      135_000_000n + BigInt(ANNOUNCE.length + WHISPER.length) * CHARACTER_NANO,
    );
    await call.bridge();
    await eventually(async () => expect(await call.events()).toContain('whisper.finished'));
    call.clock.advance(10_000);
    await call.hangup();
    await call.over();

    expect(await call.events()).toEqual([
      'call.pending',
      'call.initiated',
      'agent.ringing',
      'agent.answered',
      'announcement.started',
      'announcement.finished',
      'customer.dialing',
      'customer.ringing',
      'call.bridged',
      'whisper.started',
      'whisper.finished',
      'call.completed',
    ]);
    expect(call.speech.spoken).toEqual([ANNOUNCE, WHISPER]);
    const { log } = call.mediaPlane.session;
    expect(log.filter((line) => /^(play|path|connect)/.test(line) && !line.endsWith('done'))).toEqual([
      'connect agent 20000',
      'play 9600 alone',
      'path ringback',
      'connect customer 30000',
      'path bridged',
      'play 6400 over',
      'path idle',
    ]);
    expect(await call.usage()).toEqual([
      { operation: 'announce', quantity: ANNOUNCE.length },
      { operation: 'whisper', quantity: WHISPER.length },
    ]);
    const speechNano = BigInt(ANNOUNCE.length + WHISPER.length) * CHARACTER_NANO;
    expect(await call.row()).toMatchObject({
      state: 'completed',
      costNano: 10_000_000n,
      speechCostNano: speechNano,
      billingStatus: 'billed',
    });
    expect(await call.wallet()).toMatchObject({ availableNano: 10n * USD - 10_000_000n - speechNano, heldNano: 0n });
    expect(call.clock.waiting()).toEqual([]);
  });

  it('keeps its text out of the database and the log', async () => {
    const speech = new FakeSpeech();
    speech.onSpeak = (text) => {
      throw new Error(`cannot say ${text}`);
    };
    const call = await placeCall({ announce: ANNOUNCE, whisper: WHISPER }, { speech });
    await call.bridge();
    await call.hangup();
    await call.over();
    const stored = JSON.stringify(
      [await call.row(), await listCallEvents(database.sql, { callId: call.callId })],
      (_, value) => (typeof value === 'bigint' ? String(value) : value),
    );
    const logged = JSON.stringify(call.logger.lines, (_, value) => (value instanceof Error ? value.stack : value));
    for (const kept of [stored, logged]) {
      for (const word of ['Asha', '9810000077', 'twice']) expect(kept).not.toContain(word);
    }
  });

  it('charges an announcement that started before the agent hung up, and does not dial the customer', async () => {
    const call = await placeCall({ announce: ANNOUNCE, whisper: WHISPER });
    call.mediaPlane.session.onPlay = () => new Promise(() => {});
    await call.answerAgent();
    await eventually(async () => expect(await call.events()).toContain('announcement.started'));
    await call.hangup();
    await call.over();
    expect(call.sip.legs).toHaveLength(1);
    expect(await call.usage()).toEqual([{ operation: 'announce', quantity: ANNOUNCE.length }]);
    expect(await call.row()).toMatchObject({
      error: 'agent_hung_up',
      costNano: null,
      speechCostNano: BigInt(ANNOUNCE.length) * CHARACTER_NANO,
      billingStatus: 'billed',
    });
    expect(await call.wallet()).toMatchObject({ heldNano: 0n });
  });

  it('stops after half a minute', async () => {
    const speech = new FakeSpeech();
    speech.wordMs = 9_000;
    const call = await placeCall({ announce: 'on and on and on' }, { speech });
    await call.bridge();
    expect(call.mediaPlane.session.log).toContain('play 480000 alone');
    await call.hangup();
    await call.over();
  });
});

describe('failing speech to the agent', () => {
  const failures: [string, (speech: FakeSpeech) => void, string][] = [
    [
      'the engine fails',
      (speech) => failSpeech(speech, new SynthesizerError('crashed', 'gone')),
      'the speech engine failed',
    ],
    [
      'the engine cannot be reached',
      (speech) => failSpeech(speech, new SynthesizerError('unavailable', 'no route')),
      'the speech engine is not available',
    ],
    [
      'the voice was deleted meanwhile',
      (speech) => failSpeech(speech, new SynthesizerError('unknown_voice', 'no such voice')),
      'the voice is not there any more',
    ],
    [
      'the voice cannot pronounce the text',
      (speech) => failSpeech(speech, new SynthesizerError('unsayable', 'no sound')),
      'the voice can say nothing of it',
    ],
    [
      'the engine returns no audio',
      (speech) => {
        speech.wordMs = 0;
      },
      'the speech engine said nothing',
    ],
  ];
  for (const [name, fail, detail] of failures) {
    it(`leaves the call intact and is logged: ${name}`, async () => {
      const speech = new FakeSpeech();
      fail(speech);
      const call = await placeCall({ announce: ANNOUNCE, whisper: WHISPER }, { speech });
      await call.bridge();
      await eventually(async () => expect(await call.events()).toContain('whisper.failed'));
      await call.hangup();
      await call.over();
      const events = await listCallEvents(database.sql, { callId: call.callId });
      const speechEvents = events.filter(({ event }) => /^(announcement|whisper)/.test(event));
      expect(speechEvents.map((row) => [row.event, row.leg, row.detail])).toEqual([
        ['announcement.failed', 'agent', detail],
        ['whisper.failed', 'agent', detail],
      ]);
      expect(await call.usage()).toEqual([]);
      expect(await call.row()).toMatchObject({ state: 'completed', speechCostNano: null });
      expect(await call.wallet()).toMatchObject({ heldNano: 0n });
    });
  }

  it('leaves the call intact when the media does not play it', async () => {
    const call = await placeCall({ announce: ANNOUNCE });
    call.mediaPlane.session.onCommand = (command) => {
      if (command.startsWith('play')) throw new Error('the worker is gone');
    };
    await call.bridge();
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(events.find(({ event }) => event === 'announcement.failed')?.detail).toBe('it could not be played');
    await call.hangup();
    await call.over();
    expect(await call.usage()).toEqual([]);
  });

  it('leaves the call intact when the engine never answers', async () => {
    const speech = new FakeSpeech();
    let ended = false;
    speech.onSpeak = (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          ended = true;
          reject(signal.reason);
        });
      });
    const call = await placeCall({ announce: ANNOUNCE }, { speech });
    await call.answerAgent();
    await eventually(() => expect(call.clock.waiting()).toContain(3_000));
    expect(call.sip.legs).toHaveLength(1);
    call.clock.advance(3_000);
    await eventually(() => expect(call.sip.legs).toHaveLength(2));
    await call.registry.get(call.callId)!.journal.drained();
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(events.find(({ event }) => event === 'announcement.failed')?.detail).toBe('it was not made in time');
    await call.hangup();
    await call.over();
    expect(ended).toBe(true);
    expect(await call.usage()).toEqual([]);
    expect(call.clock.waiting()).toEqual([]);
  });

  it('blocks no other speech', async () => {
    const speech = new FakeSpeech();
    let left = false;
    speech.onSpeak = (text, signal) => {
      if (text !== ANNOUNCE) return;
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          left = true;
          reject(signal.reason);
        });
      });
    };
    const call = await placeCall({ announce: ANNOUNCE, whisper: WHISPER }, { speech });
    await call.answerAgent();
    await eventually(() => expect(call.clock.waiting()).toContain(3_000));
    // Requests the announcement first, because of other calls that start at the same time.
    expect(speech.spoken).toEqual([ANNOUNCE]);
    call.clock.advance(3_000);
    await eventually(() => expect(call.sip.legs).toHaveLength(2));
    expect(left).toBe(true);
    await eventually(() => expect(speech.spoken).toEqual([ANNOUNCE, WHISPER]));
    call.customer().emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia(30_000) });
    await eventually(async () => expect(await call.events()).toContain('whisper.finished'));
    await call.hangup();
    await call.over();
    expect(await call.usage()).toEqual([{ operation: 'whisper', quantity: WHISPER.length }]);
    expect(call.clock.waiting()).toEqual([]);
  });

  it('leaves the call intact when no voice exists', async () => {
    const options = await openDialer({ sql: database.sql });
    options.speech.onResolve = ({ voiceId }) => {
      throw new TandemError('VOICE_NOT_FOUND', `There is no ${voiceId ?? 'voice'}.`);
    };
    const { call } = await options.dialer.place(options.request({ announce: ANNOUNCE }));
    const live = options.registry.get(call.call_id)!;
    await eventually(() => expect(options.sip.legs).toHaveLength(1));
    options.sip.legs[0]!.emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia() });
    await eventually(() => expect(options.sip.legs).toHaveLength(2));
    await live.journal.drained();
    const events = await listCallEvents(database.sql, { callId: call.call_id });
    expect(events.find(({ event }) => event === 'announcement.failed')).toMatchObject({
      event: 'announcement.failed',
      detail: 'there is no voice to say it',
    });
    live.actor.send({ type: 'hangup.requested', reason: 'shutdown' });
    options.clock.advance(10_000);
    await live.settled;
  });
});

describe('impossible speech to the agent', () => {
  const refusals: [string, Partial<PlaceCallRequest>, string][] = [
    ['SSML that is broken', { announce: '<speak>Hello' }, 'INVALID_ANNOUNCE'],
    ['nothing but punctuation', { announce: '... !' }, 'INVALID_ANNOUNCE'],
    ['a broken whisper', { whisper: '<speak><b>x</speak>' }, 'INVALID_WHISPER'],
    ['a voice that is not there', { announce: 'Hello', voiceId: 'nobody' }, 'VOICE_NOT_FOUND'],
  ];
  for (const [name, wanted, code] of refusals) {
    it(`fails before placement: ${name}`, async () => {
      const options = await openDialer({ sql: database.sql });
      options.speech.onResolve = ({ voiceId }) => {
        if (voiceId !== null) throw new TandemError('VOICE_NOT_FOUND', 'There is no such voice.');
      };
      await expect(options.dialer.place(options.request(wanted))).rejects.toMatchObject({ code });
      expect(await options.rows()).toEqual([]);
    });
  }

  it('fails when the wallet does not cover it', async () => {
    const options = await openDialer({ sql: database.sql, balanceNano: BigInt(ANNOUNCE.length) * CHARACTER_NANO - 1n });
    await expect(options.dialer.place(options.request({ announce: ANNOUNCE }))).rejects.toMatchObject({
      code: 'RECHARGE_REQUIRED',
    });
  });

  it('costs the price at admission, and nothing for markup', async () => {
    const call = await placeCall({ announce: '<speak><prosody rate="slow">Order</prosody></speak>' });
    await setPrice(database.sql, {
      scope: { workspaceId: call.caller.workspaceId },
      item: 'tts',
      value: USD,
      now: NOW,
    });
    await call.bridge();
    await call.hangup();
    await call.over();
    expect(await call.row()).toMatchObject({ speechCostNano: 5n * CHARACTER_NANO });
  });
});

describe('speech to the agent after a killed server', () => {
  for (const announced of [true, false]) {
    it(`costs ${announced ? 'its price after' : 'nothing before'} its start event`, async () => {
      const node = `node-${crypto.randomUUID()}`;
      const caller = await seedCaller(database.sql);
      const row = await caller.admit({ announceCharacters: 100, ownerNode: node, ownerBoot: 'boot-1' });
      const move = { event: 'agent.answered', state: 'initiated', leg: 'agent', at: NOW } as const;
      await recordMoves(
        database.sql,
        row.callId,
        [{ ...move, sipStatus: null, hangupCause: null, detail: null }],
        announced ? { announced } : {},
      );
      for (let start = 2; start <= 3; start += 1) {
        await reconcile({
          sip: new FakeSip(),
          sql: database.sql,
          lost: { node, exceptBoot: `boot-${start}` },
          owner: { node, boot: `boot-${start}` },
          seenAt: later(1_000),
          recordingsDir: null,
          publish: () => undefined,
          now: later(60_000),
          deliverer: createFakeDeliverer(),
          recordings: createFakeDesk(),
          logger: createTestLogger(),
        });
      }
      expect(await getCallById(database.sql, row.callId)).toMatchObject({
        state: 'failed',
        costNano: null,
        speechCostNano: announced ? 100n * CHARACTER_NANO : null,
        billingStatus: announced ? 'billed' : null,
      });
      expect(await walletOf(database.sql, caller.workspaceId)).toMatchObject({
        availableNano: 10n * USD - (announced ? 100n * CHARACTER_NANO : 0n),
        heldNano: 0n,
      });
    });
  }
});

function failSpeech(speech: FakeSpeech, error: Error): void {
  speech.onSpeak = () => {
    throw error;
  };
}

async function placeCall(wanted: Partial<PlaceCallRequest> = {}, options: Partial<DialerOptions> = {}) {
  const call = await placeCallOn({ sql: database.sql, ...options }, wanted);
  const { workspaceId } = call.caller;
  const row = async () => (await getCallById(database.sql, call.callId))!;
  return {
    ...call,
    row,
    wallet: () => walletOf(database.sql, workspaceId),
    events: async () => (await listCallEvents(database.sql, { callId: call.callId })).map(({ event }) => event),
    async answerAgent() {
      call.agent().emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia(20_000) });
      await quiet();
    },
    async usage() {
      const { rows } = await listUsage(database.sql, { workspaceId, service: 'tts' }, { page: 1, limit: 10 });
      return rows
        .map(({ operation, quantity }) => ({ operation, quantity: Number(quantity) }))
        .sort((a, b) => a.operation.localeCompare(b.operation));
    },
  };
}
