import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SynthesisSettings } from '../../../speech/engines/available-synthesizers.ts';
import { createSpeechSynthesis } from '../../../speech/speech-synthesis.thread.ts';
import type { SpeakRequest, SpeechSynthesis, SpokenPart } from '../../../speech/speech-synthesis.ts';
import { heardIn } from './fake-engine.ts';
import { RECIPE, request, samplesOf } from './said.ts';
import { CRASHING_WORD, DEADLY_WORD } from './scripted-engines.ts';

const SETTINGS: SynthesisSettings = {
  processes: 2,
  modelsDir: '',
  upstream: null,
  cache: { folder: '', mostBytes: 0 },
};

const logged: [fields: object, message: string][] = [];
let synthesis: SpeechSynthesis;

function create(settings: Partial<SynthesisSettings> = {}): Promise<SpeechSynthesis> {
  return createSpeechSynthesis({
    settings: { ...SETTINGS, ...settings },
    enginesModule: new URL('./scripted-engines.ts', import.meta.url),
    logger: { warn: (fields, message) => logged.push([fields, message]) },
  });
}

function said(asked: SpeakRequest, on = synthesis): Promise<SpokenPart[]> {
  return rest(on.speak(asked, new AbortController().signal));
}

async function rest(parts: AsyncIterable<SpokenPart>): Promise<SpokenPart[]> {
  const all: SpokenPart[] = [];
  for await (const part of parts) all.push(part);
  return all;
}

beforeAll(async () => {
  synthesis = await create();
});

beforeEach(() => {
  logged.length = 0;
});

afterAll(() => synthesis.close());

describe('speech synthesis', () => {
  it('speaks a text in a thread of its own, all of it and in order', async () => {
    const parts = await said(request('w1 w2 w3 | w4 | w5 w6'));
    expect(heardIn(samplesOf(parts))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(parts.flatMap(({ words }) => words.map(({ word }) => word))).toEqual(['w1', 'w2', 'w3', 'w4', 'w5', 'w6']);
    expect(parts.at(-1)!.durationMs).toBe(600);
  });

  it('says what engines and voices there are', async () => {
    expect(synthesis.voices()).toMatchObject([{ engine: 'espeak-ng', name: 'v' }]);
    expect(await synthesis.engines()).toEqual([
      { engine: 'espeak-ng', voices: 1, problem: null },
      { engine: 'openai', voices: 0, problem: 'not configured' },
    ]);
  });

  it('logs a synthesizer that died and loses nothing', async () => {
    const parts = await said(request(`w1 ${CRASHING_WORD} w3`));
    expect(heardIn(samplesOf(parts))).toEqual([1, 0, 3]);
    expect(logged).toEqual([[{ model: 'espeak-ng/m', detail: 'as the script says' }, 'synthesizer failed']]);
  });

  it('refuses a voice of an engine that is not there', async () => {
    const recipe = { ...RECIPE, engine: 'sherpa-onnx' } as const;
    await expect(said(request('w1', { recipe }))).rejects.toMatchObject({ code: 'unknown_voice' });
  });

  it('stops with its signal, with the reason', async () => {
    const abort = new AbortController();
    const parts = synthesis.speak(request('w1 w2 | w3'), abort.signal);
    await parts.next();
    abort.abort(new Error('left'));
    await expect(parts.next()).rejects.toThrow('left');
    const gone = synthesis.speak(request('w1'), AbortSignal.abort(new Error('gone')));
    await expect(gone.next()).rejects.toThrow('gone');
  });

  it('fails the texts of a thread that died, and speaks others in a new one', async () => {
    const other = synthesis.speak(request('w1 | w2 | w3 | w4'), new AbortController().signal);
    await other.next();
    await expect(said(request(DEADLY_WORD))).rejects.toMatchObject({ code: 'crashed' });
    await expect(rest(other)).rejects.toMatchObject({ code: 'crashed' });
    expect(heardIn(samplesOf(await said(request('w4'))))).toEqual([4]);
    expect(logged).toMatchObject([[{}, 'synthesis thread lost']]);
  });

  it('speaks nothing once it is closed, and ends what is spoken', async () => {
    const own = await create();
    const parts = own.speak(request('w1 | w2 | w3 | w4'), new AbortController().signal);
    await parts.next();
    await Promise.all([own.close(), own.close()]);
    await expect(rest(parts)).rejects.toMatchObject({ code: 'crashed' });
    await expect(said(request('w1'), own)).rejects.toMatchObject({ code: 'crashed' });
  });

  it('does not start with engines that cannot be made', async () => {
    await expect(create({ modelsDir: 'damaged' })).rejects.toMatchObject({
      code: 'crashed',
      message: expect.stringContaining('as asked'),
    });
  });
});
