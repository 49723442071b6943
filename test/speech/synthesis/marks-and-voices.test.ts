import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpeechSynthesis } from '../../../speech/speech-synthesis.thread.ts';
import type { SpeechSynthesis, SpokenMark } from '../../../speech/speech-synthesis.ts';
import type { SpokenWord } from '../../../speech/synthesizer.ts';
import { readScript } from '../../../speech/text/read-script.ts';
import { PLAIN_CHARACTER, USUAL_STYLE, type VoiceRecipe } from '../../../speech/voices/voice-recipe.ts';

let synthesis: SpeechSynthesis;

beforeAll(async () => {
  synthesis = await createSpeechSynthesis({
    settings: {
      processes: 1,
      modelsDir: join(tmpdir(), 'tandem-no-models'),
      upstream: null,
      cache: { folder: join(tmpdir(), 'tandem-no-cache'), mostBytes: 0 },
    },
  });
});

afterAll(async () => {
  await synthesis.close();
});

const recipeOf = (voice: string, language = voice): VoiceRecipe => ({
  ...({ engine: 'espeak-ng', model: 'espeak-ng', engineVoice: voice, language } as const),
  ...{ own: null, character: PLAIN_CHARACTER, reference: null },
});

async function speak(ssml: string, voices: readonly VoiceRecipe[] = []) {
  const voiceLanguages = voices.map(({ language }) => language);
  const request = {
    script: readScript(`<speak>${ssml}</speak>`, { language: 'en-us', voiceLanguages }),
    recipe: recipeOf('en-us'),
    voices,
    style: { ...USUAL_STYLE, enhance: false },
    format: { encoding: 'LINEAR16', sampleRateHz: 16_000 } as const,
  };
  const audio: Uint8Array[] = [];
  const words: SpokenWord[] = [];
  const marks: SpokenMark[] = [];
  let durationMs = 0;
  for await (const part of synthesis.speak(request, new AbortController().signal)) {
    audio.push(part.audio);
    words.push(...part.words);
    marks.push(...(part.marks ?? []));
    durationMs = part.durationMs;
  }
  return { audio: Buffer.concat(audio), words, marks, durationMs };
}

function levelOf(audio: Buffer, fromMs: number, toMs: number): number {
  let energy = 0;
  const [from, to] = [Math.round(fromMs * 16), Math.round(toMs * 16)];
  for (let sample = from; sample < to; sample++) energy += audio.readInt16LE(sample * 2) ** 2;
  return Math.sqrt(energy / (to - from));
}

const ofWord = (words: readonly SpokenWord[], word: string) => words.find((each) => each.word === word)!;

describe('marks in synthesised speech', () => {
  it('carry the time of the next word, or the end of the last one', async () => {
    const { words, marks, durationMs } = await speak(
      '<mark name="start"/>Hello there. <prosody rate="slow">Slow <mark name="slow"/>words</prosody> follow<mark name="end"/>.',
    );
    expect(marks).toEqual([
      { name: 'start', atMs: ofWord(words, 'Hello').startMs },
      { name: 'slow', atMs: ofWord(words, 'words').startMs },
      { name: 'end', atMs: words.at(-1)!.endMs },
    ]);
    expect(marks[0]!.atMs).toBeLessThan(100);
    expect(marks[2]!.atMs).toBeLessThanOrEqual(durationMs);
  });

  it('separate sound from silence around a break', async () => {
    const { audio, marks } = await speak(
      'Hello there<mark name="before"/><break time="1s"/><mark name="after"/>and go on <break time="2s"/><mark name="last"/>',
    );
    const [before, after, last] = marks.map(({ atMs }) => atMs) as [number, number, number];
    expect(after - before).toBeGreaterThanOrEqual(1000);
    expect(after - before).toBeLessThan(1200);
    expect(levelOf(audio, before + 50, after - 20)).toBeLessThan(20);
    expect(levelOf(audio, before - 150, before)).toBeGreaterThan(200);
    expect(levelOf(audio, after, after + 150)).toBeGreaterThan(200);
    expect(last).toBeCloseTo(audio.length / 32, 0);
  });

  it('leave the timing unchanged', async () => {
    const marked = await speak('One <mark name="a"/>two, <mark name="b"/>three. Four<mark name="c"/>.');
    const plain = await speak('One two, three. Four.');
    // eSpeak NG varies by some samples between runs.
    expect(Math.abs(marked.durationMs - plain.durationMs)).toBeLessThan(5);
    for (const [index, { word, startMs }] of plain.words.entries()) {
      expect(marked.words[index]!.word).toBe(word);
      expect(Math.abs(marked.words[index]!.startMs - startMs)).toBeLessThan(5);
    }
  });

  it('arrive once and in order among many clauses', async () => {
    const text = Array.from({ length: 40 }, (_, index) => `<mark name="${index}"/>Word ${index}.`).join(' ');
    const { marks } = await speak(text);
    expect(marks.map(({ name }) => Number(name))).toEqual(Array.from({ length: 40 }, (_, index) => index));
    for (const [index, { atMs }] of marks.entries()) expect(atMs).toBeGreaterThanOrEqual(marks[index - 1]?.atMs ?? 0);
  });
});

describe('text with several voices', () => {
  it('uses each voice in turn with continuous word times', async () => {
    const hindi = recipeOf('hi');
    const { audio, words } = await speak('One two. <lang xml:lang="hi">एक दो.</lang> Three four.', [hindi]);
    expect(words.map(({ word }) => word)).toEqual(['One', 'two.', 'एक', 'दो.', 'Three', 'four.']);
    for (const [index, { startMs, endMs }] of words.entries()) {
      expect(startMs).toBeGreaterThanOrEqual(words[index - 1]?.endMs ?? 0);
      expect(levelOf(audio, startMs, endMs)).toBeGreaterThan(100);
    }
    const english = await speak('<lang xml:lang="hi">एक दो.</lang>', [recipeOf('en-us')]);
    const alone = await speak('<lang xml:lang="hi">एक दो.</lang>', [hindi]);
    expect(alone.audio.equals(english.audio)).toBe(false);
    // The section sounds as it does in a text of its own.
    const lengthAlone = alone.words.at(-1)!.endMs - alone.words[0]!.startMs;
    const lengthMs = ofWord(words, 'दो.').endMs - ofWord(words, 'एक').startMs;
    expect(Math.abs(lengthMs - lengthAlone)).toBeLessThanOrEqual(30);
  });

  it('fails if a voice belongs to a missing engine', async () => {
    const missing = { ...recipeOf('x'), engine: 'openai' } as const;
    await expect(speak('One. <voice name="x">Two.</voice>', [missing])).rejects.toThrow('is not there');
  });
});
