import { readWav } from '../../media/wav.ts';
import { measureVoice } from '../../speech/voices/measure-voice.ts';
import { sampleProblems } from '../../speech/voices/sample-quality.ts';
import type { VoiceMeasures } from '../../speech/voices/voice-measures.ts';

export type MeasuredVoice =
  | {
      isUsable: true;
      measures: VoiceMeasures;
      /** Index of the best sample for cloning. */
      best: number;
    }
  | {
      isUsable: false;
      /** For users. */
      error: string;
    };

/** More speech does not improve the measures. */
const MAX_MEASURED_MS = 4 * 60_000;

interface Sample {
  index: number;
  samples: Int16Array;
  sampleRateHz: number;
}

interface MeasuredSample extends Sample {
  measures: VoiceMeasures;
  problems: string[];
}

/**
 * Measures samples of one speaker: mono WAV files, best first. Unusable ones are skipped if others are usable; several
 * that are too short may suffice together. Runs in a thread.
 * @throws the file system's error; RangeError for an invalid WAV file
 */
export async function measureSamples(wavPaths: readonly string[]): Promise<MeasuredVoice> {
  const all: MeasuredSample[] = [];
  const usable: MeasuredSample[] = [];
  let usableMs = 0;
  for (const [index, path] of wavPaths.entries()) {
    if (usableMs >= MAX_MEASURED_MS) break;
    const { samples, sampleRateHz, durationMs } = await readWav(path);
    const sample = measured({ index, samples: samples[0]!, sampleRateHz });
    all.push(sample);
    if (sample.problems.length > 0) continue;
    usable.push(sample);
    usableMs += durationMs;
  }
  const [only, ...others] = usable.length > 0 ? usable : all;
  if (only === undefined) return { isUsable: false, error: 'There are no samples.' };
  const { index: best, measures, problems } = others.length === 0 ? only : measured(joined([only, ...others]));
  if (usable.length === 0 && problems.length > 0) return { isUsable: false, error: problems.join(' ') };
  return { isUsable: true, best, measures };
}

function measured(sample: Sample): MeasuredSample {
  const measures = measureVoice(sample.samples, sample.sampleRateHz);
  return { ...sample, measures, problems: sampleProblems(sample.samples, sample.sampleRateHz, measures) };
}

/** Concatenates the samples with the first one's rate. */
function joined([first, ...rest]: readonly Sample[]): Sample {
  const alike = [first!, ...rest.filter(({ sampleRateHz }) => sampleRateHz === first!.sampleRateHz)];
  const samples = new Int16Array(alike.reduce((sum, part) => sum + part.samples.length, 0));
  let at = 0;
  for (const part of alike) {
    samples.set(part.samples, at);
    at += part.samples.length;
  }
  return { ...first!, samples };
}
