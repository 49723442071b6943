import { afterEach, describe, expect, it, vi } from 'vitest';
import { RecognizerPool } from '../../../speech/recognition/recognizer-pool.ts';
import { RecognizerError } from '../../../speech/recognizer.ts';
import { crash, createFakeEngine, type FakeEngine, type FakeStep } from '../fake-engine.ts';
import { DeskFixture } from './spoken-to-desk.ts';

afterEach(() => void vi.useRealTimers());

const isRecognised = ({ type }: { type: string }) => type === 'utterance.recognised';

async function claimFrom(pool: RecognizerPool, engine: FakeEngine, signal = new AbortController().signal) {
  const [description] = await engine.describe();
  return await pool.claim({
    streamKey: 0,
    model: { engine, description: description! },
    urgency: () => 'due',
    isRecallable: false,
    isAlone: false,
    onRecall: () => {},
    signal,
  });
}

describe('recognizer pool', () => {
  it('returns a recognizer to the stream it served last', async () => {
    const engine = createFakeEngine();
    await using fixture = new DeskFixture([engine]);
    const [a, b] = [await fixture.open('live'), await fixture.open('live')];
    const first = a.begin();
    a.go(first, [1]);
    await engine.steps.first(({ type, words }) => type === 'write' && words.includes(1));
    b.say([2]);
    await b.events.count(1);
    a.end(first);
    await a.events.count(1);
    b.say([3]);
    await b.events.count(2);
    a.say([4]);
    await a.events.count(2);
    const instanceOf = (word: number) =>
      engine.steps.all.find(({ type, words }) => type === 'finish' && words.includes(word))?.instance;
    expect(instanceOf(2)).not.toBe(instanceOf(1));
    expect([instanceOf(3), instanceOf(4)]).toEqual([instanceOf(2), instanceOf(1)]);
  });

  it('serves complete utterances first and loses nothing of ongoing ones', async () => {
    const engine = createFakeEngine();
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const [talker, caller] = [await fixture.open('live'), await fixture.open('live')];
    const long = talker.begin();
    talker.go(long, [1]);
    await engine.steps.first(({ type }) => type === 'write');
    caller.say([2]);
    await caller.events.first(isRecognised);
    talker.go(long, [3]);
    talker.end(long);
    await talker.events.first(isRecognised);
    expect(talker.outcomes).toEqual([[0, '1 3']]);
    expect(fixture.broken).toEqual([]);
  });

  it('preempts an utterance at most once, until its turn comes', async () => {
    const engine = createFakeEngine();
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const [talker, caller] = [await fixture.open('live'), await fixture.open('live')];
    const long = talker.begin();
    talker.go(long, [1]);
    await engine.steps.first(({ type }) => type === 'write');
    for (const word of [2, 3]) {
      caller.say([word]);
      await caller.events.first(
        (event) => event.type === 'utterance.recognised' && event.recognition.text === `${word}`,
      );
      talker.go(long, [4]);
    }
    talker.end(long);
    await talker.events.first(isRecognised);
    expect(engine.steps.all.filter(({ type }) => type === 'cancel')).toHaveLength(1);
    expect(talker.outcomes).toEqual([[0, '1 4 4']]);
  });

  it('holds no non-streaming recognizer during speech, without lag', async () => {
    const engine = createFakeEngine({ streams: false });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const [talker, caller] = [await fixture.open('live', { hypothesisEveryMs: 1 }), await fixture.open('live')];
    const long = talker.begin();
    for (let second = 0; second < 40; second++) talker.go(long, [], 1000);
    caller.say([2]);
    await caller.events.first(isRecognised);
    talker.go(long, [1]);
    talker.end(long);
    await talker.events.first(isRecognised);
    expect(engine.steps.all.filter(({ type }) => type === 'begin')).toHaveLength(2);
    expect(talker.kinds).toEqual(['utterance.recognised']);
  });

  it('replaces idle recognizers for another model within the limit', async () => {
    let mostAtOnce = 0;
    const script = ({ type }: FakeStep): Promise<void> | undefined => {
      if (type === 'load') mostAtOnce = Math.max(mostAtOnce, 1 + english.alive + hindi.alive);
      return type === 'close' ? new Promise(setImmediate) : undefined;
    };
    const english = createFakeEngine({ script });
    const hindi = createFakeEngine({ engine: 'sherpa-onnx', model: 'hindi', languages: ['hi'], script });
    await using fixture = new DeskFixture([english, hindi], { processes: 1 });
    const a = await fixture.open('live', { languages: ['en'] });
    const b = await fixture.open('live', { languages: ['hi'] });
    for (const speaker of [a, b, a, b]) {
      speaker.say([1]);
      await speaker.events.count(speaker.events.all.length + 1);
    }
    expect(mostAtOnce).toBe(1);
    expect([...a.outcomes, ...b.outcomes].map(([, outcome]) => outcome)).toEqual(['1', '1', '1', '1']);
  });

  it('shares a process among concurrent speakers, so that all get hypotheses', async () => {
    const engine = createFakeEngine({ utterancesAtOnce: 4 });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const speakers = await Promise.all(
      Array.from({ length: 4 }, () => fixture.open('live', { hypothesisEveryMs: 1 }, { isPromised: true })),
    );
    const utterances = speakers.map((speaker, index) => {
      const utterance = speaker.begin();
      speaker.go(utterance, [index + 1]);
      return utterance;
    });
    await Promise.all(speakers.map(({ events }) => events.first(({ type }) => type === 'utterance.hypothesis')));
    expect(engine.alive).toBe(1);
    for (const [index, speaker] of speakers.entries()) speaker.end(utterances[index]!);
    await Promise.all(speakers.map(({ events }) => events.first(isRecognised)));
    expect(speakers.flatMap(({ outcomes }) => outcomes)).toEqual(['1', '2', '3', '4'].map((text) => [0, text]));
  });

  it.each([1, 2])('loses no utterance of a shared process that dies, with %s at most', async (processes) => {
    const engine = createFakeEngine({
      utterancesAtOnce: 4,
      script: ({ type, instance, words }) => {
        if (type === 'write' && instance === 0 && words.includes(9)) crash();
      },
    });
    await using fixture = new DeskFixture([engine], { processes });
    const speakers = await Promise.all(Array.from({ length: 4 }, () => fixture.open('live', {}, { isPromised: true })));
    const utterances = [];
    for (const [index, speaker] of speakers.entries()) {
      const utterance = speaker.begin();
      speaker.go(utterance, [index + 1]);
      utterances.push(utterance);
    }
    await engine.steps.count(4, ({ type }) => type === 'write');
    for (const [index, speaker] of speakers.entries()) {
      speaker.go(utterances[index]!, [9]);
      speaker.end(utterances[index]!);
      speaker.say([index + 5]);
      speaker.hangUp();
    }
    await Promise.all(speakers.map(({ closed }) => closed));
    expect(speakers.map(({ outcomes }) => outcomes)).toEqual(
      [1, 2, 3, 4].map((word) => [
        [0, `${word} 9`],
        [1, `${word + 4}`],
      ]),
    );
    expect(fixture.broken).toHaveLength(1);
    const { engines } = await fixture.desk.describe();
    expect(engines).toMatchObject([{ busy: 0 }]);
  });

  it('isolates an utterance that broke a process, so that it breaks no other twice', async () => {
    const engine = createFakeEngine({
      utterancesAtOnce: 4,
      script: ({ type, words }) => {
        if (type === 'write' && words.includes(666)) crash();
      },
    });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const [victim, killer] = [await fixture.open('live'), await fixture.open('live')];
    const long = victim.begin();
    victim.go(long, [1]);
    await engine.steps.first(({ type }) => type === 'write');
    killer.say([666]);
    await killer.events.first(({ type }) => type === 'utterance.unusable');
    victim.go(long, [2]);
    victim.end(long);
    await victim.events.first(isRecognised);
    expect(victim.outcomes).toEqual([[0, '1 2']]);
    expect(killer.outcomes).toEqual([[0, 'speech_end_no_result']]);
  });

  it('reports a model that does not load, and uses others', async () => {
    const damaged = createFakeEngine({
      engine: 'sherpa-onnx',
      model: 'damaged',
      script: ({ type }) => {
        if (type === 'load') throw new RecognizerError('model', 'tokens.txt is missing');
      },
    });
    await using fixture = new DeskFixture([damaged, createFakeEngine()]);
    const speaker = await fixture.open('live');
    speaker.say([1]);
    expect(await speaker.events.first(isRecognised)).toMatchObject({ recognition: { model: 'pocketsphinx/en-us' } });
    speaker.say([2]);
    await speaker.events.count(2);
    expect(damaged.steps.all).toHaveLength(1);
    const { engines } = await fixture.desk.describe();
    expect(engines.find(({ engine }) => engine === 'sherpa-onnx')?.problem).toBe('tokens.txt is missing');
  });

  it('suspends a model that breaks on every utterance, and uses others', async () => {
    const broken = createFakeEngine({
      engine: 'sherpa-onnx',
      model: 'cut',
      script: ({ type, words }) => {
        if (type === 'finish' && words.length > 0) crash();
      },
    });
    await using fixture = new DeskFixture([broken, createFakeEngine()], { processes: 1 });
    const speaker = await fixture.open('live');
    for (const [index, words] of [[], [1], [2], [3]].entries()) {
      speaker.say(words);
      await speaker.events.count(index + 1);
    }
    expect(speaker.outcomes.map(([, outcome]) => outcome)).toEqual(['speech_end_no_result', '1', '2', '3']);
    // Two attempts for the first word and one for the second, apart from silence.
    expect(broken.steps.all.filter(({ type }) => type === 'finish')).toHaveLength(4);
    const { engines } = await fixture.desk.describe();
    expect(engines.find(({ engine }) => engine === 'sherpa-onnx')?.problem).toContain('cut is out of service');
  });

  it('keeps a model in service that ever recognised anything', async () => {
    const engine = createFakeEngine({
      engine: 'sherpa-onnx',
      script: ({ type, words }) => {
        if (type === 'finish' && words.includes(666)) crash();
      },
    });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const speaker = await fixture.open('live');
    for (const [index, word] of [1, 666, 666, 2].entries()) {
      speaker.say([word]);
      await speaker.events.count(index + 1);
    }
    const nothing = 'speech_end_no_result';
    expect(speaker.outcomes.map(([, outcome]) => outcome)).toEqual(['1', nothing, nothing, '2']);
  });

  it('closes recognizers after they were idle for long', async () => {
    const engine = createFakeEngine();
    const pool = new RecognizerPool({ processes: 1, idleMs: 1 });
    const lease = await claimFrom(pool, engine);
    lease.release({ broken: null, audioMs: 0 });
    await engine.steps.first(({ type }) => type === 'close');
    const again = await claimFrom(pool, engine);
    expect(again.recognizer).not.toBe(lease.recognizer);
    await pool.close();
    expect(engine.alive).toBe(0);
  });

  it('counts a recognizer as broken when it does not answer', async () => {
    const engine = createFakeEngine();
    const pool = new RecognizerPool({ processes: 1, answerWithinMs: 1 });
    const lease = await claimFrom(pool, engine);
    await expect(lease.work(new Promise(() => {}))).rejects.toMatchObject({ code: 'crashed', retryable: true });
    lease.release({ broken: 'mute', audioMs: 0 });
    await pool.close();
    expect(engine.alive).toBe(0);
  });

  it('counts no recognizer as broken when the pool closes', async () => {
    const engine = createFakeEngine();
    const broken: unknown[] = [];
    const pool = new RecognizerPool({ processes: 1, onBroken: (instance) => broken.push(instance) });
    const lease = await claimFrom(pool, engine);
    const closing = pool.close();
    lease.release({ broken: 'the engine process was closed', audioMs: 0 });
    await closing;
    expect(broken).toEqual([]);
    expect(engine.alive).toBe(0);
  });

  it('reserves no recognizer for an aborted request', async () => {
    const engine = createFakeEngine();
    const pool = new RecognizerPool({ processes: 1 });
    const lease = await claimFrom(pool, engine);
    const controller = new AbortController();
    const waiting = claimFrom(pool, engine, controller.signal);
    controller.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    lease.release({ broken: null, audioMs: 0 });
    expect(pool.statusOf('pocketsphinx')).toMatchObject({ loaded: 1, busy: 0 });
    await pool.close();
    await expect(claimFrom(pool, engine)).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('reports the real-time factor', async () => {
    const engine = createFakeEngine();
    const pool = new RecognizerPool({ processes: 1 });
    expect(pool.statusOf('pocketsphinx').realTimeFactor).toBeNull();
    const lease = await claimFrom(pool, engine);
    vi.useFakeTimers({ toFake: ['performance'] });
    const working = lease.work(Promise.resolve());
    vi.advanceTimersByTime(3000);
    await working;
    lease.release({ broken: null, audioMs: 1000 });
    expect(pool.statusOf('pocketsphinx').realTimeFactor).toBe(3);
    await pool.close();
  });
});
