import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RecognizerError } from '../../../speech/recognizer.ts';
import { crash, createFakeEngine } from '../fake-engine.ts';
import { gate } from './gate.ts';
import { DeskFixture } from './spoken-to-desk.ts';

const isEnded = ({ type }: { type: string }) => type === 'recognition.ended';

afterEach(() => void vi.useRealTimers());

describe('live stream', () => {
  it('recognises one utterance at a time', async () => {
    const held = gate(({ type, words }) => type === 'finish' && words.includes(1));
    const engine = createFakeEngine({ script: held.script });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    for (const word of [1, 2]) speaker.say([word]);
    await engine.steps.first(({ type }) => type === 'finish');
    await fixture.received();
    expect(engine.steps.all.filter(({ type }) => type === 'begin')).toHaveLength(1);
    held.open();
    await speaker.events.count(2);
  });

  it('cancels a discarded utterance', async () => {
    const engine = createFakeEngine();
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    const utterance = speaker.begin();
    speaker.go(utterance, [1]);
    await engine.steps.first(({ type }) => type === 'write');
    speaker.discard(utterance);
    speaker.say([2]);
    await speaker.events.count(2);
    const ends = engine.steps.all.map(({ type }) => type).filter((type) => type === 'cancel' || type === 'finish');
    expect(ends).toEqual(['cancel', 'finish']);
  });

  it('reports one outcome per utterance in order, then its end', async () => {
    await using fixture = new DeskFixture([createFakeEngine()]);
    const speaker = await fixture.open('live');
    speaker.say([1, 2]);
    const second = speaker.begin();
    speaker.discard(second);
    speaker.say([]);
    speaker.say([3]);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    await speaker.closed;
    expect(speaker.outcomes).toEqual([
      [0, '1 2'],
      [1, 'speech_end_too_short'],
      [2, 'speech_end_no_result'],
      [3, '3'],
    ]);
    expect(fixture.desk.streams).toBe(0);
  });

  it('reports word times within the stream', async () => {
    await using fixture = new DeskFixture([createFakeEngine()]);
    const speaker = await fixture.open('live');
    speaker.say([1], 1000);
    speaker.say([2, 3], 1000);
    const outcome = await speaker.events.first(
      (event) => event.type === 'utterance.recognised' && event.utteranceId === 1,
    );
    expect(outcome).toMatchObject({
      recognition: {
        language: 'en',
        model: 'pocketsphinx/en-us',
        words: [
          { word: '2', startMs: 1000, endMs: 1010 },
          { word: '3', startMs: 1500 },
        ],
      },
    });
  });

  it('recognises during speech and reports hypotheses', async () => {
    const engine = createFakeEngine();
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live', { hypothesisEveryMs: 1 });
    const utterance = speaker.begin();
    speaker.go(utterance, [1]);
    await speaker.events.first((event) => event.type === 'utterance.hypothesis' && event.text === '1');
    speaker.go(utterance, [2]);
    await speaker.events.first((event) => event.type === 'utterance.hypothesis' && event.text === '1 2');
    speaker.end(utterance);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    expect(speaker.outcomes).toEqual([[0, '1 2']]);
    expect(speaker.kinds.at(-2)).toBe('utterance.recognised');
  });

  it('concludes what was said in a pause, before the utterance ends', async () => {
    const engine = createFakeEngine();
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    const utterance = speaker.begin();
    speaker.go(utterance, [1]);
    speaker.pause(utterance);
    const concluded = await engine.steps.first(({ type }) => type === 'pause');
    expect(concluded.words).toEqual([1]);
    speaker.go(utterance, [2]);
    speaker.pause(utterance);
    await engine.steps.first(({ type, words }) => type === 'pause' && words.includes(2));
    speaker.end(utterance);
    await speaker.events.count(1);
    expect(speaker.outcomes).toEqual([[0, '1 2']]);
    const types = engine.steps.all.map(({ type }) => type);
    expect(types).toEqual(['load', 'begin', 'write', 'pause', 'write', 'pause', 'finish']);
  });

  it('concludes at the same places however late and in what pieces it is decoded', async () => {
    const held = gate(({ type, instance }) => type === 'write' && instance === 0);
    const engine = createFakeEngine({
      script: async (step) => {
        await held.script(step);
        if (step.type === 'finish' && step.instance === 0) crash();
      },
    });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    const utterance = speaker.begin();
    for (const word of [1, 2, 3]) {
      speaker.go(utterance, [word], 300);
      speaker.go(utterance, [word], 300);
      speaker.pause(utterance);
    }
    speaker.end(utterance);
    await fixture.received();
    held.open();
    await speaker.events.count(1);
    for (const each of [0, 1]) {
      const pauses = engine.steps.all.filter(({ type, instance }) => type === 'pause' && instance === each);
      expect(pauses.map(({ words }) => words)).toEqual([
        [1, 1],
        [1, 1, 2, 2],
        [1, 1, 2, 2, 3, 3],
      ]);
    }
  });

  it('loses nothing when the recognizer dies within an utterance', async () => {
    const engine = createFakeEngine({
      script: ({ type, instance, words }) => {
        if (type === 'write' && instance === 0 && words.includes(3)) crash();
      },
    });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    const utterance = speaker.begin();
    speaker.go(utterance, [1, 2]);
    speaker.go(utterance, [3, 4]);
    await engine.steps.first(({ type, instance }) => type === 'write' && instance === 1);
    speaker.go(utterance, [5]);
    speaker.end(utterance);
    speaker.say([6]);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    expect(speaker.outcomes).toEqual([
      [0, '1 2 3 4 5'],
      [1, '6'],
    ]);
    expect(fixture.broken).toEqual([{ model: 'pocketsphinx/en-us', detail: 'as the script says' }]);
    expect(engine.alive).toBe(1);
  });

  it('loses nothing when all recognizers die during silence', async () => {
    const engine = createFakeEngine({
      script: ({ type, instance }) => {
        if (type === 'begin' && instance < 3) crash();
      },
    });
    await using fixture = new DeskFixture([engine], { processes: 3 });
    const speaker = await fixture.open('live');
    speaker.say([1]);
    await speaker.events.count(1);
    expect(speaker.outcomes).toEqual([[0, '1']]);
    expect(fixture.broken).toHaveLength(3);
  });

  it('abandons an utterance when recognizers keep breaking at once', async () => {
    const engine = createFakeEngine({ script: ({ type }) => void (type === 'begin' && crash()) });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    speaker.say([1]);
    await speaker.events.count(1);
    expect(speaker.outcomes).toEqual([[0, 'speech_end_no_result']]);
  });

  it('fails when no recognizer starts', async () => {
    const engine = createFakeEngine({ script: ({ type }) => void (type === 'load' && crash()) });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    speaker.say([1]);
    await speaker.closed;
    expect(speaker.events.all).toMatchObject([{ type: 'recognition.failed', code: 'INTERNAL' }]);
  });

  it('applies concurrent configuration changes together', async () => {
    const english = createFakeEngine();
    const hindi = createFakeEngine({ engine: 'sherpa-onnx', model: 'hindi', languages: ['hi'] });
    await using fixture = new DeskFixture([english, hindi]);
    const speaker = await fixture.open('live', { languages: ['en'] });
    await Promise.all([
      fixture.desk.configure(speaker.key, { languages: ['hi'] }),
      fixture.desk.configure(speaker.key, { keywords: [{ term: 'seven', weight: 1 }] }),
    ]);
    speaker.say([1]);
    await speaker.events.count(1);
    const { options } = await hindi.steps.first(({ type }) => type === 'begin');
    expect(options).toMatchObject({ language: 'hi', keywords: [{ term: 'seven' }] });
  });

  it('abandons an utterance that breaks two recognizers, and continues', async () => {
    const engine = createFakeEngine({
      script: ({ type, words }) => {
        if (type === 'finish' && words.includes(13)) crash();
      },
    });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    speaker.say([13]);
    speaker.say([1]);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    expect(speaker.outcomes).toEqual([
      [0, 'speech_end_no_result'],
      [1, '1'],
    ]);
    expect(fixture.broken).toHaveLength(2);
  });

  it('switches the engine after two failures', async () => {
    const first = createFakeEngine({
      engine: 'sherpa-onnx',
      model: 'frail',
      script: ({ type }) => void (type === 'write' && crash()),
    });
    const second = createFakeEngine();
    await using fixture = new DeskFixture([second, first]);
    const speaker = await fixture.open('live');
    speaker.say([1]);
    const outcome = await speaker.events.first(({ type }) => type === 'utterance.recognised');
    expect(outcome).toMatchObject({ recognition: { text: '1', model: 'pocketsphinx/en-us' } });
    expect(first.steps.all.filter(({ type }) => type === 'write')).toHaveLength(2);
  });

  it('survives a rejected utterance of an upstream server, and ends after three in a row', async () => {
    const refused = new RecognizerError('rate_limited', 'wait', { retryable: true, retryAfterS: 17 });
    const engine = createFakeEngine({
      engine: 'openai',
      streams: false,
      script: ({ type, words }) => {
        if (type === 'finish' && words.includes(429)) throw refused;
      },
    });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    for (const word of [429, 1, 429, 429, 429]) speaker.say([word]);
    await speaker.events.first(({ type }) => type === 'recognition.failed');
    const impaired = ['recognition.impaired', 'utterance.unusable'];
    expect(speaker.kinds).toEqual([
      ...[...impaired, 'utterance.recognised'],
      ...[...impaired, ...impaired, 'recognition.failed'],
    ]);
    expect(speaker.events.all[0]).toMatchObject({ code: 'STT_UPSTREAM_RATE_LIMIT' });
  });

  it('switches to the local engine when an upstream server rejects an utterance', async () => {
    const upstream = createFakeEngine({
      engine: 'openai',
      script: ({ type }) => {
        if (type === 'finish') throw new RecognizerError('rate_limited', 'wait', { retryable: true, retryAfterS: 17 });
      },
    });
    await using fixture = new DeskFixture([upstream, createFakeEngine()]);
    const speaker = await fixture.open('live');
    speaker.say([1]);
    expect(await speaker.events.first(() => true)).toMatchObject({ recognition: { model: 'pocketsphinx/en-us' } });
  });

  it('reports a hypothesis once per interval, only after new audio', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const engine = createFakeEngine();
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live', { hypothesisEveryMs: 300 });
    const utterance = speaker.begin();
    for (const word of [1, 2, 3]) {
      speaker.go(utterance, [word]);
      await engine.steps.first(({ type, words }) => type === 'write' && words.includes(word));
      await fixture.received();
      if (word === 2) vi.advanceTimersByTime(900);
    }
    vi.advanceTimersByTime(300);
    await speaker.events.count(2);
    vi.advanceTimersByTime(300);
    speaker.end(utterance);
    await speaker.events.first(({ type }) => type === 'utterance.recognised');
    const texts = speaker.events.all.flatMap((event) => (event.type === 'utterance.hypothesis' ? [event.text] : []));
    expect(texts).toEqual(['1 2', '1 2 3']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('skips hypotheses while it lags, and reports start and end of the lag', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const held = gate(({ type }) => type === 'write');
    const engine = createFakeEngine({ script: held.script });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live', { hypothesisEveryMs: 300 });
    const utterance = speaker.begin();
    for (let word = 1; word <= 5; word++) speaker.go(utterance, [word], 1000);
    const lagging = await speaker.events.first(({ type }) => type === 'recognition.lagging');
    expect(lagging).toMatchObject({ isShedding: true, lagMs: 3000 });
    await fixture.received();
    vi.advanceTimersByTime(300);
    held.open();
    await speaker.events.first(({ type }) => type === 'utterance.hypothesis');
    speaker.end(utterance);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    expect(speaker.events.all).toMatchObject([
      { type: 'recognition.lagging', isShedding: true },
      { type: 'recognition.lagging', isShedding: false, lagMs: 1000 },
      { type: 'utterance.hypothesis', text: '1 2 3 4' },
      { type: 'utterance.recognised', recognition: { text: '1 2 3 4 5' } },
      { type: 'recognition.ended' },
    ]);
  });

  it('ends as overloaded when its queue is too long', async () => {
    const held = gate(({ type }) => type === 'write');
    const engine = createFakeEngine({ script: held.script });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('live');
    const utterance = speaker.begin();
    for (let second = 0; second < 31; second++) speaker.go(utterance, [1], 1000);
    await speaker.events.first(({ type }) => type === 'recognition.overloaded');
    await speaker.closed;
    expect(speaker.kinds).toEqual(['recognition.lagging', 'recognition.overloaded']);
    held.open();
    await engine.steps.first(({ type }) => type === 'cancel');
  });

  it('reports rejected text as a hallucination, not as a result', async () => {
    await using fixture = new DeskFixture([createFakeEngine()]);
    const speaker = await fixture.open('live');
    const utterance = speaker.begin();
    speaker.go(
      utterance,
      Array.from({ length: 40 }, () => 12_345),
      400,
    );
    speaker.end(utterance, { speechMs: 100 });
    const outcome = await speaker.events.first(({ type }) => type.startsWith('utterance.'));
    expect(outcome).toMatchObject({ type: 'utterance.unusable', reason: 'hallucination_rejected' });
    expect((outcome as { rejectedText: string }).rejectedText).toMatch(/^12345 12345/);
  });

  it('labels speakers by channel on request', async () => {
    await using fixture = new DeskFixture([createFakeEngine()]);
    const diarization = { by: 'channel', minSpeakers: null, maxSpeakers: null } as const;
    const speaker = await fixture.open('live', { diarization });
    const [left, right] = [speaker.begin(0), speaker.begin(1)];
    speaker.go(right, [2]);
    speaker.go(left, [1]);
    speaker.end(right, { channel: 1 });
    speaker.end(left, { channel: 0 });
    speaker.hangUp();
    await speaker.events.first(isEnded);
    const speakers = speaker.events.all.flatMap((event) =>
      event.type === 'utterance.recognised' ? event.recognition.words.map(({ word, speaker: by }) => [word, by]) : [],
    );
    expect(speakers).toEqual([
      ['1', 'speaker_1'],
      ['2', 'speaker_2'],
    ]);
  });

  it('fails when its audio source disappears, after it reported complete utterances', async () => {
    await using fixture = new DeskFixture([createFakeEngine()]);
    const speaker = await fixture.open('live');
    speaker.say([1]);
    speaker.go(speaker.begin(), [2]);
    speaker.vanish();
    const failed = await speaker.events.first(({ type }) => type === 'recognition.failed');
    expect(failed).toMatchObject({ code: 'INTERNAL' });
    expect(speaker.outcomes).toEqual([[0, '1']]);
    expect(fixture.desk.streams).toBe(0);
  });

  it('closes the port of a rejected stream', async () => {
    await using fixture = new DeskFixture([createFakeEngine()]);
    const { port1, port2 } = new MessageChannel();
    const settings = { languages: ['bn'], keywords: [], hypothesisEveryMs: null, diarization: null };
    const opening = fixture.desk.open({ streamKey: 0, mode: 'live', settings, utterances: port2 });
    await expect(opening).rejects.toMatchObject({ code: 'unsupported_language' });
    await once(port1, 'close');
  });

  it('returns its recognizer when closed within an utterance', async () => {
    const engine = createFakeEngine();
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const speaker = await fixture.open('live');
    speaker.go(speaker.begin(), [1]);
    await engine.steps.first(({ type }) => type === 'write');
    fixture.desk.close(speaker.key);
    await speaker.closed;
    const next = await fixture.open('live');
    next.say([2]);
    await next.events.first(({ type }) => type === 'utterance.recognised');
    expect(speaker.kinds).toEqual([]);
    expect(engine.steps.all.filter(({ type }) => type === 'load')).toHaveLength(1);
    expect(fixture.broken).toEqual([]);
  });
});
