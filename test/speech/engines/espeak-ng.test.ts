import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EngineProcess } from '../../../speech/engine-process/engine-process.ts';
import { controlsFor } from '../../../speech/engines/espeak-ng/controls.ts';
import { createEspeakEngine } from '../../../speech/engines/espeak-ng/espeak-engine.ts';
import { ESPEAK_VOICES } from '../../../speech/engines/espeak-ng/espeak-voices.ts';
import { IpaReader } from '../../../speech/engines/espeak-ng/ipa.ts';
import { spokenText } from '../../../speech/engines/espeak-ng/spoken-text.ts';
import type { Clause, Synthesizer, WordMark } from '../../../speech/synthesizer.ts';
import type { ScriptWord } from '../../../speech/text/script.ts';

const NEVER = new AbortController().signal;
const engine = createEspeakEngine({ processes: 1 });
let espeak: Synthesizer;

beforeAll(async () => {
  espeak = await engine.start({ model: 'espeak-ng', signal: NEVER });
});

afterAll(async () => {
  await espeak.close();
});

const wordsOf = (text: string): ScriptWord[] =>
  text.split(' ').map((word) => ({ written: word, spoken: word, phonemes: null }));

async function speak(text: string | ScriptWord[], options: Partial<Clause> = {}) {
  const words = typeof text === 'string' ? wordsOf(text) : text;
  const usual = { voice: 'en-us', speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null };
  const marks: WordMark[] = [];
  let samples = 0;
  for await (const block of espeak.speak({ words, ...usual, ...options }, NEVER)) {
    samples += block.samples.length;
    marks.push(...block.marks);
  }
  return { marks, durationMs: (samples * 1000) / espeak.sampleRateHz };
}

const SENTENCE = 'The people of the town had never seen a ship as large as the one that lay before them in the harbour';

describe('the voices of eSpeak NG', () => {
  it('are those that the engine itself lists', async () => {
    const entry = new URL('../../../speech/engines/espeak-ng/espeak-child.ts', import.meta.url);
    const child = await EngineProcess.start({ entry, argument: null });
    const listed = (await child.call('voices', null)) as { name: string; languages: string[] }[];
    await child.close();
    expect(listed.map(({ name, languages }) => [name, languages[0]!.toLowerCase()])).toEqual(ESPEAK_VOICES);
  });

  it('all speak, each word marked once, in order and inside the audio', async () => {
    for (const { name } of await engine.voices()) {
      const { marks, durationMs } = await speak('Tandem 12 नमस्ते 你好 Привет مرحبا ok', { voice: name });
      expect(durationMs, name).toBeGreaterThan(200);
      expect(marks.length, name).toBeGreaterThan(0);
      for (const [index, { word, atMs }] of marks.entries()) {
        const last = marks[index - 1] ?? { word: -1, atMs: 0 };
        expect(word, name).toBeGreaterThan(last.word);
        expect(atMs, name).toBeGreaterThanOrEqual(last.atMs);
        expect(atMs, name).toBeLessThanOrEqual(durationMs);
      }
    }
    // Seven seconds of computing at a low priority, which other work easily makes a minute.
  }, 180_000);

  it.each(['en-us+f3', 'hi+m4', 'EN-US', 'en-us+Mr serious'])('may be varied as %s', async (voice) => {
    expect((await speak('One two.', { voice })).durationMs).toBeGreaterThan(200);
  });

  it.each(['xx', 'en-us+nobody', '../lang/gmw/en', 'mb-en1', 'en-us+../../lang/gmw/de', '', 'x'.repeat(5000)])(
    'have none that is named %j, and the instance goes on',
    async (voice) => {
      await expect(speak('One.', { voice })).rejects.toMatchObject({ code: 'unknown_voice' });
      expect((await speak('One.')).durationMs).toBeGreaterThan(100);
    },
  );
});

describe('eSpeak NG', () => {
  it.each([0.25, 0.4, 0.5, 0.75, 1.3, 2])('speaks at %d times its pace', async (speed) => {
    const [usual, asked] = [await speak(SENTENCE), await speak(SENTENCE, { speed })];
    expect(usual.durationMs / asked.durationMs / speed).toBeGreaterThan(0.92);
    expect(usual.durationMs / asked.durationMs / speed).toBeLessThan(1.08);
  });

  it.each([
    ['markup', 'wait <break time="9s"/> here'],
    ['entities', 'wait &lt;break&gt; here'],
    ['control characters', 'wait \u0001300S \u0000 here'],
    ['phonemes in brackets', "wait [[h@l'oU]] here"],
    ['half of a pair', 'wait \ud83d here'],
  ])('speaks %s as text', async (_, text) => {
    const { durationMs } = await speak(text);
    expect(durationMs).toBeGreaterThan(500);
    expect(durationMs).toBeLessThan(6000);
    // What would last beyond the clause did not.
    const usual = await speak('One two three.');
    expect((await speak('One two three.')).durationMs / usual.durationMs).toBeCloseTo(1, 1);
  });

  it.each([
    ['nothing that can be said', '...'],
    ['nothing at all', ''],
    ['a smiley', '😀'],
    ['a word without end', 'a'.repeat(2000)],
  ])('answers with audio to %s', async (_, text) => {
    expect((await speak(text)).durationMs).toBeGreaterThan(0);
  });

  it('refuses what it would speak for minutes, and goes on', async () => {
    await expect(speak('9'.repeat(40).concat(' ').repeat(100).trim())).rejects.toMatchObject({ code: 'too_long' });
    expect((await speak('One.')).durationMs).toBeGreaterThan(100);
  });

  it('says a word as its phonemes ask', async () => {
    const asked = await speak([{ written: 'a', spoken: 'a', phonemes: 'ˌmɪsɪsˈɪpi' }]);
    expect(asked.durationMs / (await speak('Mississippi')).durationMs).toBeCloseTo(1, 1);
    expect(asked.durationMs).toBeGreaterThan(1.5 * (await speak('a')).durationMs);
  });

  it('spells a word whose phonemes its language has not', async () => {
    const strange = await speak([{ written: 'red', spoken: 'red', phonemes: 'ʘǃ' }]);
    expect(strange.durationMs / (await speak('red')).durationMs).toBeCloseTo(1, 1);
  });

  it('marks a number of several spoken words once', async () => {
    const { marks } = await speak('My 1,234 dogs bark');
    expect(marks.map(({ word }) => word)).toEqual([0, 1, 2, 3]);
  });

  it('ends what nobody listens to any more, and speaks the next clause', async () => {
    const ended = new AbortController();
    const clause = { voice: 'en-us', speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null };
    const blocks = espeak.speak({ ...clause, words: wordsOf(SENTENCE) }, ended.signal)[Symbol.asyncIterator]();
    await blocks.next();
    ended.abort(new Error('gone'));
    await expect(blocks.next()).rejects.toThrow('gone');
    expect((await speak('One.')).durationMs).toBeLessThan(1000);
  });
});

describe('the controls of eSpeak NG', () => {
  it('are in the middle for the voice as it is', () => {
    expect(controlsFor({ speed: 1, pitchSemitones: 0, pitchRange: 1 })).toEqual({
      rate: 175,
      pitch: 50,
      range: 50,
      stretch: 1,
    });
  });

  it('stay within what there is', () => {
    for (const asked of [-1000, 0, 1000, Number.NaN, Number.POSITIVE_INFINITY]) {
      const { rate, pitch, range } = controlsFor({ speed: asked, pitchSemitones: asked, pitchRange: asked });
      expect([rate >= 80 && rate <= 450, pitch >= 0 && pitch <= 99, range >= 0 && range <= 99]).toEqual([
        true,
        true,
        true,
      ]);
    }
  });

  it('raise the pitch where a narrow range would lower it', () => {
    expect(controlsFor({ speed: 1, pitchSemitones: 0, pitchRange: 0 }).pitch).toBeGreaterThan(60);
  });
});

describe('words for eSpeak NG', () => {
  const word = (spoken: string, phonemes: string | null = null): ScriptWord => ({ written: spoken, spoken, phonemes });

  it('begin where they stand in the text, counted in code points', () => {
    const words = [word('😀😀'), word(''), word('a b'), word('[[x]]'), word('end')];
    expect(spokenText(words, () => null)).toEqual({ text: '😀😀 a b  [x]] end', starts: [0, 3, 3, 7, 13] });
  });

  it('keep the punctuation behind phonemes', () => {
    expect(spokenText([word('tomato,', 'x')], () => 't0m').text).toBe('[[t0m]],');
  });
});

describe('IPA for eSpeak NG', () => {
  const sounds: Record<string, string> = { t: 't', S: 'ʃ', tS: 'tʃ', 'i:': 'ˈiː', Q: 'iː', x: '' };
  const reader = new IpaReader(Object.keys(sounds), (mnemonic) => sounds[mnemonic]!);

  it('takes the longest sound, whatever the ties, dots and signs for stress', () => {
    expect(reader.read('ˈt͡ʃiː.t')).toBe("'tS|i:|t");
    expect(reader.read("'tʃi:t")).toBe("'tS|i:|t");
  });

  it('is not read where a sound is unknown, or there is none', () => {
    expect([reader.read('tʘ'), reader.read(''), reader.read(' . ')]).toEqual([null, null, null]);
  });
});
