import { afterEach, describe, expect, it, vi } from 'vitest';
import { RecognizerError } from '../../../speech/recognizer.ts';
import { crash, createFakeEngine, type FakeStep } from '../fake-engine.ts';
import { gate } from './gate.ts';
import { DeskFixture, type Speaker } from './spoken-to-desk.ts';

const isEnded = ({ type }: { type: string }) => type === 'recognition.ended';

afterEach(() => void vi.useRealTimers());

function credited(speaker: Speaker): number {
  return speaker.credits.all.reduce((sum, { samples }) => sum + samples, 0);
}

describe('batch stream', () => {
  it('recognises utterances in parallel and reports them in order', async () => {
    const held = gate(({ type, words }) => type === 'finish' && words.includes(1));
    const engine = createFakeEngine({ script: held.script });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('batch');
    for (const word of [1, 2, 3]) speaker.say([word]);
    speaker.hangUp();
    // The second recognizer finishes both others while the first is held.
    await engine.steps.first(({ type, words }) => type === 'finish' && words.includes(3));
    expect(speaker.outcomes).toEqual([]);
    held.open();
    await speaker.events.first(isEnded);
    expect(speaker.outcomes).toEqual([
      [0, '1'],
      [1, '2'],
      [2, '3'],
    ]);
    expect(engine.steps.all.filter(({ type }) => type === 'load')).toHaveLength(2);
  });

  it('pauses the file reader while an utterance has no recognizer', async () => {
    const held = gate(({ type }) => type === 'write');
    const engine = createFakeEngine({ script: held.script });
    await using fixture = new DeskFixture([engine], { processes: 2 });
    const speaker = await fixture.open('batch');
    speaker.say([1], 1000);
    speaker.say([2], 1000);
    speaker.say([3], 1000);
    speaker.hangUp();
    await engine.steps.count(2, ({ type }) => type === 'write');
    await speaker.credits.count(2);
    expect(credited(speaker)).toBe(32_000);
    held.open();
    await speaker.events.first(isEnded);
    await speaker.closed;
    expect(credited(speaker)).toBe(48_000);
  });

  it('credits samples once, regardless of retries and outcomes', async () => {
    const held = gate(({ type, instance }) => type === 'load' && instance === 0);
    const engine = createFakeEngine({
      script: (step) => {
        if (step.type === 'finish' && step.instance === 0) crash();
        return held.script(step);
      },
    });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const speaker = await fixture.open('batch');
    speaker.say([1], 3000);
    const second = speaker.begin();
    speaker.go(second, [2], 1000);
    speaker.discard(second);
    speaker.hangUp();
    await fixture.received();
    held.open();
    await speaker.events.first(isEnded);
    await speaker.closed;
    expect(speaker.outcomes).toEqual([
      [0, '1'],
      [1, 'speech_end_too_short'],
    ]);
    expect(credited(speaker)).toBe(64_000);
  });

  it('alternates with other batches', async () => {
    const held = gate(({ type, words }) => type === 'begin' && words.length === 0);
    const engine = createFakeEngine({ script: held.script });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const [long, short] = [await fixture.open('batch'), await fixture.open('batch')];
    for (const word of [1, 2, 3]) long.say([word]);
    await engine.steps.first(({ type }) => type === 'begin');
    short.say([9]);
    short.hangUp();
    long.hangUp();
    await fixture.received();
    held.open();
    await Promise.all([long.events.first(isEnded), short.events.first(isEnded)]);
    const finished = engine.steps.all.filter(({ type }) => type === 'finish').map(({ words }) => words[0]);
    expect(finished).toEqual([1, 9, 2, 3]);
  });

  it('yields to live speech', async () => {
    const held = gate(({ type }) => type === 'load');
    const engine = createFakeEngine({ script: held.script });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const [batch, live] = [await fixture.open('batch'), await fixture.open('live')];
    batch.say([1]);
    live.say([2]);
    await fixture.received();
    held.open();
    await Promise.all([batch.events.count(1), live.events.count(1)]);
    const written = engine.steps.all.filter(({ type }) => type === 'write').map(({ words }) => words[0]);
    expect(written).toEqual([2, 1]);
    expect(engine.steps.all.filter(({ type }) => type === 'cancel')).toEqual([]);
  });

  it('yields its recognizer to live speech once, and repeats the utterance', async () => {
    const isOfFile = ({ type, words }: FakeStep) => type === 'write' && words[0] === 1;
    const holds = [gate(isOfFile), gate(isOfFile)];
    const engine = createFakeEngine({
      script: (step) => {
        const attempt = engine.steps.all.filter((it) => it.type === 'begin' && it.words.length === 0).length;
        return holds[attempt === 1 ? 0 : 1]!.script(step);
      },
    });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const [batch, live] = [await fixture.open('batch'), await fixture.open('live')];
    batch.say([1, 3], 2000);
    await engine.steps.first(isOfFile);
    live.say([2]);
    await fixture.received();
    holds[0]!.open();
    await live.events.count(1);
    await engine.steps.count(2, isOfFile);
    live.say([4]);
    await fixture.received();
    holds[1]!.open();
    await Promise.all([batch.events.count(1), live.events.count(2)]);
    expect(batch.outcomes).toEqual([[0, '1 3']]);
    expect(fixture.broken).toEqual([]);
    expect(engine.steps.all.filter(({ type }) => type === 'cancel')).toHaveLength(1);
  });

  it('yields at any time, since a file can wait', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const held = gate(({ type, words }) => type === 'write' && words[0] === 1);
    const engine = createFakeEngine({ script: held.script });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const [batch, live] = [await fixture.open('batch'), await fixture.open('live')];
    batch.say([1], 2000);
    await engine.steps.first(({ type }) => type === 'write');
    vi.advanceTimersByTime(60_000);
    live.say([2]);
    await fixture.received();
    held.open();
    await Promise.all([batch.events.count(1), live.events.count(1)]);
    const finished = engine.steps.all.filter(({ type }) => type === 'finish').map(({ words }) => words[0]);
    expect(finished).toEqual([2, 1]);
  });

  it('keeps no recognizer for an incomplete utterance while another one retries', async () => {
    let crashes = 0;
    const held = gate(({ type, words }) => type === 'write' && words.includes(1));
    const engine = createFakeEngine({
      script: async (step) => {
        await held.script(step);
        if (step.type === 'write' && step.words.includes(1) && crashes++ === 0) crash();
      },
    });
    await using fixture = new DeskFixture([engine], { processes: 1 });
    const speaker = await fixture.open('batch');
    speaker.say([1], 1000);
    await engine.steps.first(({ type }) => type === 'write');
    speaker.go(speaker.begin(), [2], 1000);
    await fixture.received();
    held.open();
    await speaker.events.count(1);
    expect(speaker.outcomes).toEqual([[0, '1']]);
  });

  it.each([true, false])('pauses the reader while an utterance is incomplete (engine streams: %s)', async (streams) => {
    const engine = createFakeEngine({ streams });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('batch');
    const utterance = speaker.begin();
    speaker.go(utterance, [1], 1000);
    await fixture.received();
    // A credit would have arrived by now.
    await fixture.received();
    expect(credited(speaker)).toBe(0);
    speaker.end(utterance);
    await speaker.credits.count(1);
    expect(credited(speaker)).toBe(16_000);
  });

  it('fails with the error code and Retry-After of the upstream server', async () => {
    const engine = createFakeEngine({
      engine: 'openai',
      streams: false,
      script: ({ type }) => {
        if (type === 'finish') throw new RecognizerError('rate_limited', 'slowly', { retryable: true, retryAfterS: 7 });
      },
    });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('batch');
    speaker.say([1]);
    speaker.hangUp();
    const failed = await speaker.events.first(({ type }) => type === 'recognition.failed');
    expect(failed).toMatchObject({ code: 'STT_UPSTREAM_RATE_LIMIT', message: 'slowly', retryAfterS: 7 });
    await speaker.closed;
    expect(fixture.desk.streams).toBe(0);
    expect(fixture.broken).toEqual([]);
  });

  it('retries once if the upstream server is briefly unavailable', async () => {
    let asked = 0;
    const engine = createFakeEngine({
      engine: 'openai',
      streams: false,
      script: ({ type }) => {
        if (type === 'finish' && asked++ === 0) {
          throw new RecognizerError('unavailable', 'busy', { retryable: true, retryAfterS: 0 });
        }
      },
    });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('batch');
    speaker.say([1]);
    await speaker.events.first(({ type }) => type === 'utterance.recognised');
    expect(asked).toBe(2);
  });

  it('repeats an utterance with a requested language if another one was detected', async () => {
    const engine = createFakeEngine({ languages: ['en', 'hi', 'de'], detectsLanguage: true, detected: 'de' });
    await using fixture = new DeskFixture([engine]);
    const speaker = await fixture.open('batch', { languages: ['hi', 'en'] });
    speaker.say([1]);
    const event = await speaker.events.first(({ type }) => type === 'utterance.recognised');
    expect(event).toMatchObject({ recognition: { language: 'hi', text: '1' } });
    const asked = engine.steps.all.filter(({ type }) => type === 'begin').map(({ options }) => options?.language);
    expect(asked).toEqual([null, 'hi']);
  });
});
