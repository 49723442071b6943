import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { trackPitch } from '../../../media/dsp/pitch.ts';
import type {
  Clause,
  EngineVoice,
  SynthesisEngine,
  Synthesizer,
  VoiceReference,
  WordMark,
} from '../../../speech/synthesizer.ts';

export interface ConformingEngine {
  name: string;
  engine: () => Promise<SynthesisEngine>;
  voice?: string;
  /** Several words in the language of the voice, some seconds long. */
  text: string;
  isDeterministic: boolean;
  hasMarks: boolean;
  /** Tolerance of the duration ratio between speeds 0.5 and 2, ideally 4. */
  speedTolerance: number;
  reference?: VoiceReference;
}

const HARDLY_TEXT: Readonly<Record<string, readonly string[]>> = {
  'words that are not said': ['', '', ''],
  'one word of two that is not said': ['one', ''],
  emoji: ['😀', '👩‍👩‍👧‍👦', '🇮🇳'],
  'a word of 250 letters': ['ab'.repeat(125)],
  'control characters': ['one\u0000two', '\u0001', '\u001b[31m', '\u0007', '\u2028'],
  'halves of pairs': ['\ud83d', 'a\udc00b'],
  'combining marks alone': ['\u0301\u0301\u0301', '\u200d', '\ufeff'],
  'punctuation alone': ['...', '-', '?!', '—', '"'],
  markup: ['<speak>', '&amp;', '[[', '{{x}}', '</break>'],
  Devanagari: ['नमस्ते', 'दुनिया'],
  Chinese: ['你好', '世界'],
  Arabic: ['مرحبا', 'بالعالم'],
  Tamil: ['வணக்கம்'],
  'letters of rare planes': ['𝒽𝑒𝓁𝓁𝑜', '𐍈𐌰'],
  'digits without end': ['9'.repeat(60)],
};

const NEVER = new AbortController().signal;
const MOST_VOICES = 8;

export function itIsASynthesisEngine(conforming: ConformingEngine): void {
  describe(`synthesis engine ${conforming.name}`, { timeout: 120_000 }, () => {
    let engine: SynthesisEngine;
    let voices: readonly EngineVoice[];
    let usual: EngineVoice;
    let synthesizer: Synthesizer;
    const started: Synthesizer[] = [];

    const start = async (voice: EngineVoice): Promise<Synthesizer> => {
      const one = await engine.start({ model: voice.model, signal: NEVER });
      started.push(one);
      return one;
    };

    const clauseOf = (words: readonly string[], options: Partial<Clause> = {}): Clause => ({
      words: words.map((word) => ({ written: word, spoken: word, phonemes: null })),
      ...{ voice: usual.name, speed: 1, pitchSemitones: 0, pitchRange: 1 },
      reference: usual.clones ? (conforming.reference ?? null) : null,
      ...options,
    });
    const text = conforming.text.split(' ');

    beforeAll(async () => {
      engine = await conforming.engine();
      voices = await engine.voices();
      usual = voices.find(({ name }) => name === conforming.voice) ?? voices[0]!;
      synthesizer = await start(usual);
    });

    afterAll(async () => {
      await Promise.all(started.map((one) => one.close()));
    });

    it('lists voices with unique names and valid languages, and no problem', async () => {
      expect(voices.length).toBeGreaterThan(0);
      expect(await engine.problem()).toBeNull();
      expect(new Set(voices.map(({ name }) => name)).size).toBe(voices.length);
      for (const { language, model } of voices) {
        expect(language).toMatch(/^[a-z]{2,8}(-[a-z0-9]{1,8})*$/);
        expect(model).not.toBe('');
      }
    });

    it('speaks with listed voices', async () => {
      const step = Math.max(1, Math.floor(voices.length / MOST_VOICES));
      for (const voice of voices.filter((_, index) => index % step === 0)) {
        const one = voice.model === usual.model ? synthesizer : await start(voice);
        const { samples, durationMs } = await speak(one, clauseOf(text, { voice: voice.name }));
        expect(durationMs, voice.name).toBeGreaterThan(200);
        expect(durationMs, voice.name).toBeLessThan(60_000);
        expect(
          samples.some((sample) => Math.abs(sample) > 500),
          voice.name,
        ).toBe(true);
      }
    });

    it('speaks faster and slower on request', async () => {
      const slow = await speak(synthesizer, clauseOf(text, { speed: 0.5 }));
      const middle = await speak(synthesizer, clauseOf(text));
      const fast = await speak(synthesizer, clauseOf(text, { speed: 2 }));
      expect(middle.durationMs).toBeLessThan(slow.durationMs);
      expect(middle.durationMs).toBeGreaterThan(fast.durationMs);
      expect(Math.abs(slow.durationMs / fast.durationMs - 4)).toBeLessThan(conforming.speedTolerance);
    });

    it.each([0.2, 5, 0.0001, 1000])('speaks at speed %d within its limits', async (speed) => {
      expect((await speak(synthesizer, clauseOf(text.slice(0, 2), { speed }))).durationMs).toBeGreaterThan(0);
    });

    it.each(Object.entries(HARDLY_TEXT))('survives %s', async (_, words) => {
      const { durationMs, marks } = await speak(synthesizer, clauseOf(words));
      expect(durationMs).toBeGreaterThan(0);
      expect(durationMs).toBeLessThan(120_000);
      for (const { word } of marks) expect(word).toBeLessThan(words.length);
      expect((await speak(synthesizer, clauseOf(text.slice(0, 2)))).durationMs).toBeGreaterThan(50);
    });

    it('marks words in order and inside the audio, or not at all', async () => {
      const { marks, durationMs } = await speak(synthesizer, clauseOf(text));
      const words = marks.map(({ word }) => word);
      expect(words).toEqual([...new Set(words)].sort((one, other) => one - other));
      // Short words may merge.
      if (conforming.hasMarks) expect(words.length).toBeGreaterThan(0.8 * text.length);
      else expect(words).toEqual([]);
      const timesMs = marks.map(({ atMs }) => atMs);
      expect(timesMs).toEqual(timesMs.toSorted((one, other) => one - other));
      for (const atMs of timesMs) expect(atMs >= 0 && atMs <= durationMs).toBe(true);
    });

    it('rejects an unknown voice and stays usable', async () => {
      for (const voice of ['nobody', '', '../../etc/passwd', 'x'.repeat(5000), `${usual.name}#99`]) {
        const refused = speak(synthesizer, clauseOf(text, { voice }));
        await expect(refused).rejects.toMatchObject({ name: 'SynthesizerError', code: 'unknown_voice' });
      }
      expect((await speak(synthesizer, clauseOf(text))).durationMs).toBeGreaterThan(200);
    });

    it('rejects an unknown model', async () => {
      // An engine with a single model may ignore the name.
      const starting = engine.start({ model: 'no-such-model', signal: NEVER });
      const outcome = await starting.then(
        (one) => one.close(),
        (error: unknown) => error,
      );
      if (outcome !== undefined) expect(outcome).toMatchObject({ name: 'SynthesizerError', code: 'model' });
    });

    it('stops when aborted at any time, and speaks the next clause', async () => {
      const gone = new Error('nobody listens any more');
      await expect(speak(synthesizer, clauseOf(text), AbortSignal.abort(gone))).rejects.toBe(gone);
      for (const takenBlocks of [0, 1]) {
        const ended = new AbortController();
        const long = Array.from({ length: 10 }, () => text).flat();
        const blocks = synthesizer.speak(clauseOf(long), ended.signal)[Symbol.asyncIterator]();
        for (let taken = 0; taken < takenBlocks; taken++) await blocks.next();
        const next = blocks.next();
        ended.abort(gone);
        // Finished audio may still arrive.
        await expect(drain(next, blocks)).rejects.toBe(gone);
        expect((await speak(synthesizer, clauseOf(text))).durationMs).toBeGreaterThan(200);
      }
    });

    it('continues after a reader returns within a clause', async () => {
      for await (const { samples } of synthesizer.speak(clauseOf(text), NEVER)) {
        expect(samples.length).toBeGreaterThan(0);
        break;
      }
      expect((await speak(synthesizer, clauseOf(text))).durationMs).toBeGreaterThan(200);
    });

    it('stops when closed, and rejects later clauses', async () => {
      const one = await start(usual);
      const long = Array.from({ length: 10 }, () => text).flat();
      const speaking = speak(one, clauseOf(long)).then(
        () => null,
        (error: unknown) => error,
      );
      await one.close();
      await one.close();
      expect(await speaking).toMatchObject({ name: 'SynthesizerError', code: 'crashed' });
      await expect(speak(one, clauseOf(text))).rejects.toMatchObject({ code: 'crashed' });
    });

    it('ends with the abort signal of its start', async () => {
      const owner = new AbortController();
      const one = await engine.start({ model: usual.model, signal: owner.signal });
      started.push(one);
      owner.abort(new Error('the owner is gone'));
      await expect(speak(one, clauseOf(text))).rejects.toMatchObject({ name: 'SynthesizerError', code: 'crashed' });
      await expect(engine.start({ model: usual.model, signal: owner.signal })).rejects.toThrow('the owner is gone');
    });

    it('gives the same samples in another instance, if deterministic', async () => {
      const other = await start(usual);
      const [one, same] = [await speak(synthesizer, clauseOf(text)), await speak(other, clauseOf(text))];
      expect(other.sampleRateHz).toBe(synthesizer.sampleRateHz);
      if (conforming.isDeterministic) expect(Buffer.compare(bytesOf(one.samples), bytesOf(same.samples))).toBe(0);
      else expect(Math.abs(one.durationMs / same.durationMs - 1)).toBeLessThan(0.3);
    });

    /** Whether the samples show that none of these options changes a thing. Tracking the pitch takes longer than speaking. */
    const areIgnored = async (...changes: Partial<Clause>[]): Promise<boolean> => {
      if (engine.controlsPitch || !conforming.isDeterministic) return false;
      const own = bytesOf((await speak(synthesizer, clauseOf(text))).samples);
      for (const change of changes) {
        const { samples } = await speak(synthesizer, clauseOf(text, change));
        if (Buffer.compare(own, bytesOf(samples)) !== 0) return false;
      }
      return true;
    };

    it('changes pitch on request, if supported', async () => {
      if (await areIgnored({ pitchSemitones: -4 }, { pitchSemitones: 4 })) return;
      const medianOf = async (options: Partial<Clause>) =>
        median(await pitchesOf(synthesizer, clauseOf(text, options)));
      const own = await medianOf({});
      for (const pitchSemitones of [-4, 4]) {
        const semitones = 12 * Math.log2((await medianOf({ pitchSemitones })) / own);
        if (engine.controlsPitch) expect(Math.abs(semitones - pitchSemitones)).toBeLessThan(1.5);
        else expect(Math.abs(semitones)).toBeLessThan(0.5);
      }
    });

    it('changes pitch range on request, if supported', async () => {
      if (await areIgnored({ pitchRange: 0 }, { pitchRange: 1.6 })) return;
      const rangeOf = async (pitchRange: number) =>
        spread(await pitchesOf(synthesizer, clauseOf(text, { pitchRange })));
      const [still, own, lively] = [await rangeOf(0), await rangeOf(1), await rangeOf(1.6)];
      if (engine.controlsPitch) {
        expect(still).toBeLessThan(0.7 * own);
        expect(lively).toBeGreaterThan(1.15 * own);
      } else expect(Math.abs(still - lively)).toBeLessThan(0.5);
    });
  });
}

async function speak(synthesizer: Synthesizer, clause: Clause, signal = NEVER) {
  const blocks: Int16Array[] = [];
  const marks: WordMark[] = [];
  for await (const block of synthesizer.speak(clause, signal)) {
    blocks.push(block.samples);
    marks.push(...block.marks);
  }
  const samples = new Int16Array(blocks.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const block of blocks) {
    samples.set(block, offset);
    offset += block.length;
  }
  return { samples, marks, durationMs: (samples.length * 1000) / synthesizer.sampleRateHz };
}

async function drain(first: Promise<IteratorResult<unknown>>, rest: AsyncIterator<unknown>): Promise<void> {
  for (let next = await first; !next.done; next = await rest.next());
}

function bytesOf({ buffer, byteOffset, byteLength }: Int16Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** Voiced frames in hertz, ascending. */
async function pitchesOf(synthesizer: Synthesizer, clause: Clause): Promise<number[]> {
  const { samples } = await speak(synthesizer, clause);
  const { hz } = trackPitch(Float32Array.from(samples), synthesizer.sampleRateHz);
  return [...hz].filter((frequency) => frequency > 0).sort((one, other) => one - other);
}

function median(sorted: readonly number[]): number {
  return sorted[sorted.length >> 1]!;
}

/** 10th to 90th percentile in semitones. */
function spread(sorted: readonly number[]): number {
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!;
  return 12 * Math.log2(at(0.9) / at(0.1));
}
