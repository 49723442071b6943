import { describe, expect, it } from 'vitest';
import { meanPower } from '../../../media/dsp/level.ts';
import { spokenUtterances, withNoise } from '../../speech/spoken.ts';
import { detectUtterances, type Line, networks, speechSpans } from './detect-utterances.ts';
import { joined, silence } from './recogniser.ts';
import { MUSIC, NOISES, SIGNALLING } from './sounds.ts';

const WINDOW = 512;
const LINES: Line[] = ['wide', 'telephone'];
const spoken = spokenUtterances();

/** Every utterance between silences; with `snrDb`, white noise over all of it. */
function recordings(snrDb: number | null): { clean: Int16Array; received: Int16Array }[] {
  return spoken.map(({ samples }, index) => {
    const clean = joined(silence(1504), samples, silence(2016));
    const share = samples.length / clean.length;
    return { clean, received: snrDb === null ? clean : withNoise(clean, snrDb + 10 * Math.log10(share), index) };
  });
}

/** Windows with certain speech: within 25 dB of the loudest of the clean recording. */
function loudWindows(clean: Int16Array): boolean[] {
  const powers = Array.from({ length: Math.floor(clean.length / WINDOW) }, (_, i) =>
    meanPower(clean.subarray(i * WINDOW, (i + 1) * WINDOW)),
  );
  const loud = powers.toSorted((a, b) => a - b)[Math.floor(powers.length * 0.95)]!;
  return powers.map((power) => power > loud / 10 ** 2.5);
}

/** Share of speech outside of utterances, and of silence (400 ms or more from speech) inside. */
function missAndFalseAlarm(snrDb: number | null, line: Line): { missed: number; falseAlarms: number; pieces: number } {
  let [speech, missed, quiet, falseAlarms, pieces] = [0, 0, 0, 0, 0];
  for (const { clean, received } of recordings(snrDb)) {
    const spans = speechSpans(detectUtterances(received, { line }));
    pieces += spans.length;
    const loud = loudWindows(clean);
    for (const [index, isLoud] of loud.entries()) {
      const atMs = index * 32;
      const isAudible = spans.some(({ fromMs, toMs }) => fromMs <= atMs && atMs + 32 <= toMs);
      const isNearSpeech = loud.slice(Math.max(0, index - 16), index + 17).includes(true);
      if (isLoud) [speech, missed] = [speech + 1, missed + (isAudible ? 0 : 1)];
      else if (!isNearSpeech) [quiet, falseAlarms] = [quiet + 1, falseAlarms + (isAudible ? 1 : 0)];
    }
  }
  return { missed: missed / speech, falseAlarms: falseAlarms / quiet, pieces };
}

describe('voice detection', () => {
  it('runs the neural network', () => {
    expect(networks.problem).toBeNull();
  });

  it.each([
    ['clean speech', null, 0.02],
    ['speech 20 dB above noise', 20, 0.02],
    ['speech 10 dB above noise', 10, 0.03],
  ] as const)('detects %s including onsets, and excludes noise around it', (_, snrDb, mostMissed) => {
    for (const line of LINES) {
      const { missed, falseAlarms, pieces } = missAndFalseAlarm(snrDb, line);
      expect(missed, line).toBeLessThan(mostMissed);
      expect(falseAlarms, line).toBeLessThan(0.01);
      expect(pieces, line).toBe(spoken.length);
    }
  });

  it.each(Object.keys({ ...SIGNALLING, ...NOISES, ...MUSIC }))('ignores %s', (name) => {
    const sound = { ...SIGNALLING, ...NOISES, ...MUSIC }[name]!;
    for (const [levelDbfs, seed] of [
      [-6, 3],
      [-25, 4],
    ] as const) {
      const samples = sound({ durationMs: 6000, levelDbfs, seed });
      for (const line of LINES) {
        expect(speechSpans(detectUtterances(samples, { line })), `${line} at ${levelDbfs} dB`).toEqual([]);
      }
    }
  });

  it.each([...Object.keys(SIGNALLING), 'held chords', 'organ melody'])('detects speech right after %s', (name) => {
    const command = spoken.find((utterance) => utterance.name === 'goforward')!.samples;
    const sound = { ...SIGNALLING, ...MUSIC }[name]!({ durationMs: 6000, levelDbfs: -12, seed: 6 });
    const spans = speechSpans(detectUtterances(joined(sound, command, silence(1500)), { line: 'telephone' }));
    // The words lie between 0.55 and 2.2 s.
    expect(spans).toHaveLength(1);
    expect(spans[0]!.fromMs).toBeGreaterThan(5000);
    expect(spans[0]!.fromMs).toBeLessThan(6550);
    expect(spans[0]!.toMs).toBeGreaterThan(8200);
  });

  it('keeps speech that a dial tone follows', () => {
    const command = spoken.find((utterance) => utterance.name === 'goforward')!.samples;
    const tone = SIGNALLING['dial tone (350 + 440 Hz)']!({ durationMs: 4000, levelDbfs: -6, seed: 1 });
    for (const line of LINES) {
      const spans = speechSpans(detectUtterances(joined(silence(500), command, tone), { line }));
      expect(spans, line).toHaveLength(1);
      expect(spans[0]!.toMs, line).toBeLessThan(500 + command.length / 16 + 300);
    }
  });

  it('falls back to energy and tonality without the network: clean speech, but no tones', () => {
    for (const line of LINES) {
      for (const { received } of recordings(null)) {
        expect(speechSpans(detectUtterances(received, { line, isWithoutNetwork: true }))).toHaveLength(1);
      }
      for (const [name, sound] of Object.entries(SIGNALLING)) {
        if (name.includes('80 ms') || name.includes('special information')) continue;
        const samples = sound({ durationMs: 6000, levelDbfs: -12, seed: 7 });
        const speechMs = speechSpans(detectUtterances(samples, { line, isWithoutNetwork: true })).map(
          (span) => span.speechMs,
        );
        expect(
          speechMs.reduce((sum, ms) => sum + ms, 0),
          `${name}, ${line}`,
        ).toBeLessThan(1000);
      }
    }
  });
});
