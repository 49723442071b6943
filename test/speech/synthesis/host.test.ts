import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SynthesisSettings } from '../../../speech/engines/available-synthesizers.ts';
import { createSpeechSynthesis } from '../../../speech/speech-synthesis.thread.ts';
import type { SpeakRequest, SpeechSynthesis, SpokenPart } from '../../../speech/speech-synthesis.ts';
import { decodeWords } from './fake-engine.ts';
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
  it('speaks a whole text in order, in its own thread', async () => {
    const parts = await said(request('w1 w2 w3 | w4 | w5 w6'));
    expect(decodeWords(samplesOf(parts))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(parts.flatMap(({ words }) => words.map(({ word }) => word))).toEqual(['w1', 'w2', 'w3', 'w4', 'w5', 'w6']);
    expect(parts.at(-1)!.durationMs).toBe(600);
  });

  it('lists engines and voices', async () => {
    expect(synthesis.voices()).toMatchObject([{ engine: 'espeak-ng', name: 'v' }]);
    expect(await synthesis.engines()).toEqual([
      { engine: 'espeak-ng', voices: 1, problem: null },
      { engine: 'openai', voices: 0, problem: 'not configured' },
    ]);
  });

  it('logs a synthesizer that died and loses nothing', async () => {
    const parts = await said(request(`w1 ${CRASHING_WORD} w3`));
    expect(decodeWords(samplesOf(parts))).toEqual([1, 0, 3]);
    expect(logged).toEqual([[{ model: 'espeak-ng/m', detail: 'as the script says' }, 'synthesizer failed']]);
  });

  it('rejects a voice of a missing engine', async () => {
    const recipe = { ...RECIPE, engine: 'sherpa-onnx' } as const;
    await expect(said(request('w1', { recipe }))).rejects.toMatchObject({ code: 'unknown_voice' });
  });

  it('stops with the abort reason', async () => {
    const abort = new AbortController();
    const parts = synthesis.speak(request('w1 w2 | w3'), abort.signal);
    await parts.next();
    abort.abort(new Error('left'));
    await expect(parts.next()).rejects.toThrow('left');
    const gone = synthesis.speak(request('w1'), AbortSignal.abort(new Error('gone')));
    await expect(gone.next()).rejects.toThrow('gone');
  });

  it('fails the texts of a dead thread and starts a new one', async () => {
    const other = synthesis.speak(request('w1 | w2 | w3 | w4'), new AbortController().signal);
    await other.next();
    await expect(said(request(DEADLY_WORD))).rejects.toMatchObject({ code: 'crashed' });
    await expect(rest(other)).rejects.toMatchObject({ code: 'crashed' });
    expect(decodeWords(samplesOf(await said(request('w4'))))).toEqual([4]);
    expect(logged).toMatchObject([[{}, 'synthesis thread lost']]);
  });

  it('rejects texts after it is closed, and ends current ones', async () => {
    const own = await create();
    const parts = own.speak(request('w1 | w2 | w3 | w4'), new AbortController().signal);
    await parts.next();
    await Promise.all([own.close(), own.close()]);
    await expect(rest(parts)).rejects.toMatchObject({ code: 'crashed' });
    await expect(said(request('w1'), own)).rejects.toMatchObject({ code: 'crashed' });
  });

  it('fails to start when the engines do', async () => {
    await expect(create({ modelsDir: 'damaged' })).rejects.toMatchObject({
      code: 'crashed',
      message: expect.stringContaining('as asked'),
    });
  });
});
