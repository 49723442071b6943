import { readWav } from '../../media/wav.ts';
import { measureVoice } from '../../speech/voices/measure-voice.ts';
import { sampleProblems } from '../../speech/voices/sample-quality.ts';
import type { VoiceMeasures } from '../../speech/voices/voice-measures.ts';

export type HeardVoice =
  | {
      isUsable: true;
      measures: VoiceMeasures;
      /** Index of the sample that is the best to clone. */
      best: number;
    }
  | {
      isUsable: false;
      /** For a person. */
      error: string;
    };

/** More tells nothing more about a voice. */
const MOST_HEARD_MS = 4 * 60_000;

interface Sample {
  index: number;
  samples: Int16Array;
  sampleRateHz: number;
}

interface HeardSample extends Sample {
  measures: VoiceMeasures;
  problems: string[];
}

/**
 * Listens to samples of one speaker, mono WAV files, the most telling first. Those that are not usable are left out as
 * long as others are; many that are too short can be enough together. For a thread.
 * @throws the file system's error; RangeError of what is no WAV file
 */
export async function hearVoice(wavPaths: readonly string[]): Promise<HeardVoice> {
  const heard: HeardSample[] = [];
  const usable: HeardSample[] = [];
  let heardMs = 0;
  for (const [index, path] of wavPaths.entries()) {
    if (heardMs >= MOST_HEARD_MS) break;
    const { samples, sampleRateHz, durationMs } = await readWav(path);
    const sample = measured({ index, samples: samples[0]!, sampleRateHz });
    heard.push(sample);
    if (sample.problems.length > 0) continue;
    usable.push(sample);
    heardMs += durationMs;
  }
  const [only, ...others] = usable.length > 0 ? usable : heard;
  if (only === undefined) return { isUsable: false, error: 'There are no samples.' };
  const { index: best, measures, problems } = others.length === 0 ? only : measured(joined([only, ...others]));
  if (usable.length === 0 && problems.length > 0) return { isUsable: false, error: problems.join(' ') };
  return { isUsable: true, best, measures };
}

function measured(sample: Sample): HeardSample {
  const measures = measureVoice(sample.samples, sample.sampleRateHz);
  return { ...sample, measures, problems: sampleProblems(sample.samples, sample.sampleRateHz, measures) };
}

/** Those of the same rate as the first, one after the other. */
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
