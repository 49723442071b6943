import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EngineProcess } from '../../../speech/engine-process/engine-process.ts';
import { controlsFor } from '../../../speech/engines/espeak-ng/controls.ts';
import { createEspeakEngine, ESPEAK_CHILD } from '../../../speech/engines/espeak-ng/espeak-engine.ts';
import { espeakText } from '../../../speech/engines/espeak-ng/espeak-text.ts';
import { ESPEAK_VOICES } from '../../../speech/engines/espeak-ng/espeak-voices.ts';
import { IpaReader } from '../../../speech/engines/espeak-ng/ipa.ts';
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

describe('eSpeak NG voices', () => {
  it('match the list of the engine', async () => {
    const child = await EngineProcess.start({ entry: ESPEAK_CHILD, argument: null });
    const listed = (await child.call('voices', null)) as { name: string; languages: string[] }[];
    await child.close();
    expect(listed.map(({ name, languages }) => [name, languages[0]!.toLowerCase()])).toEqual(ESPEAK_VOICES);
  });

  it('all speak, with ordered word marks inside the audio', async () => {
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
    // Computes for seven seconds at low priority, up to a minute on a busy machine.
  }, 180_000);

  it.each(['en-us+f3', 'hi+m4', 'EN-US', 'en-us+Mr serious'])('accept the variant %s', async (voice) => {
    expect((await speak('One two.', { voice })).durationMs).toBeGreaterThan(200);
  });

  it.each(['xx', 'en-us+nobody', '../lang/gmw/en', 'mb-en1', 'en-us+../../lang/gmw/de', '', 'x'.repeat(5000)])(
    'reject %j and leave the instance usable',
    async (voice) => {
      await expect(speak('One.', { voice })).rejects.toMatchObject({ code: 'unknown_voice' });
      expect((await speak('One.')).durationMs).toBeGreaterThan(100);
    },
  );
});

describe('eSpeak NG', () => {
  it.each([0.25, 0.4, 0.5, 0.75, 1.3, 2])('speaks at %d times the normal speed', async (speed) => {
    const [usual, asked] = [await speak(SENTENCE), await speak(SENTENCE, { speed })];
    expect(usual.durationMs / asked.durationMs / speed).toBeGreaterThan(0.92);
    expect(usual.durationMs / asked.durationMs / speed).toBeLessThan(1.08);
  });

  it.each([
    ['markup', 'wait <break time="9s"/> here'],
    ['entities', 'wait &lt;break&gt; here'],
    ['control characters', 'wait \u0001300S \u0000 here'],
    ['phonemes in brackets', "wait [[h@l'oU]] here"],
    ['a lone surrogate', 'wait \ud83d here'],
  ])('reads %s as text', async (_, text) => {
    const { durationMs } = await speak(text);
    expect(durationMs).toBeGreaterThan(500);
    expect(durationMs).toBeLessThan(6000);
    // Formatting must not outlast its clause.
    const usual = await speak('One two three.');
    expect((await speak('One two three.')).durationMs / usual.durationMs).toBeCloseTo(1, 1);
  });

  it.each([
    ['unpronounceable text', '...'],
    ['an empty text', ''],
    ['an emoji', '😀'],
    ['an endless word', 'a'.repeat(2000)],
  ])('produces audio for %s', async (_, text) => {
    expect((await speak(text)).durationMs).toBeGreaterThan(0);
  });

  it('rejects text that takes minutes and stays usable', async () => {
    await expect(speak('9'.repeat(40).concat(' ').repeat(100).trim())).rejects.toMatchObject({ code: 'too_long' });
    expect((await speak('One.')).durationMs).toBeGreaterThan(100);
  });

  it('pronounces given phonemes', async () => {
    const asked = await speak([{ written: 'a', spoken: 'a', phonemes: 'ˌmɪsɪsˈɪpi' }]);
    expect(asked.durationMs / (await speak('Mississippi')).durationMs).toBeCloseTo(1, 1);
    expect(asked.durationMs).toBeGreaterThan(1.5 * (await speak('a')).durationMs);
  });

  it('spells a word with foreign phonemes', async () => {
    const strange = await speak([{ written: 'red', spoken: 'red', phonemes: 'ʘǃ' }]);
    expect(strange.durationMs / (await speak('red')).durationMs).toBeCloseTo(1, 1);
  });

  it('emits one mark for a number of several spoken words', async () => {
    const { marks } = await speak('My 1,234 dogs bark');
    expect(marks.map(({ word }) => word)).toEqual([0, 1, 2, 3]);
  });

  it('stops when aborted and speaks the next clause', async () => {
    const ended = new AbortController();
    const clause = { voice: 'en-us', speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null };
    const blocks = espeak.speak({ ...clause, words: wordsOf(SENTENCE) }, ended.signal)[Symbol.asyncIterator]();
    await blocks.next();
    ended.abort(new Error('gone'));
    await expect(blocks.next()).rejects.toThrow('gone');
    expect((await speak('One.')).durationMs).toBeLessThan(1000);
  });
});

describe('eSpeak NG controls', () => {
  it('stay at the middle for an unchanged voice', () => {
    expect(controlsFor({ speed: 1, pitchSemitones: 0, pitchRange: 1 })).toEqual({
      rate: 175,
      pitch: 50,
      range: 50,
      stretch: 1,
    });
  });

  it('stay within their limits', () => {
    for (const asked of [-1000, 0, 1000, Number.NaN, Number.POSITIVE_INFINITY]) {
      const { rate, pitch, range } = controlsFor({ speed: asked, pitchSemitones: asked, pitchRange: asked });
      expect([rate >= 80 && rate <= 450, pitch >= 0 && pitch <= 99, range >= 0 && range <= 99]).toEqual([
        true,
        true,
        true,
      ]);
    }
  });

  it('raise the pitch to compensate for a narrow range', () => {
    expect(controlsFor({ speed: 1, pitchSemitones: 0, pitchRange: 0 }).pitch).toBeGreaterThan(60);
  });
});

describe('eSpeak NG words', () => {
  const word = (spoken: string, phonemes: string | null = null): ScriptWord => ({ written: spoken, spoken, phonemes });

  it('start at their position in code points', () => {
    const words = [word('😀😀'), word(''), word('a b'), word('[[x]]'), word('end')];
    expect(espeakText(words, () => null)).toEqual({ text: '😀😀 a b  [x]] end', starts: [0, 3, 3, 7, 13] });
  });

  it('keep the punctuation behind phonemes', () => {
    expect(espeakText([word('tomato,', 'x')], () => 't0m').text).toBe('[[t0m]],');
  });
});

describe('IPA conversion for eSpeak NG', () => {
  const sounds: Record<string, string> = { t: 't', S: 'ʃ', tS: 'tʃ', 'i:': 'ˈiː', Q: 'iː', x: '' };
  const reader = new IpaReader(Object.keys(sounds), (mnemonic) => sounds[mnemonic]!);

  it('matches the longest sound and ignores ties, dots and stress marks', () => {
    expect(reader.read('ˈt͡ʃiː.t')).toBe("'tS|i:|t");
    expect(reader.read("'tʃi:t")).toBe("'tS|i:|t");
  });

  it('returns null for unknown sounds and empty text', () => {
    expect([reader.read('tʘ'), reader.read(''), reader.read(' . ')]).toEqual([null, null, null]);
  });
});
