import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../config.ts';
import { Resampler } from '../media/dsp/resample.ts';
import { createListeningPlane } from '../media/listening-plane.workers.ts';
import { engineSettingsOf } from '../speech/engines/available-engines.ts';
import { createSpeechRecognition } from '../speech/speech-recognition.thread.ts';
import { recogniseBatch } from './recognise-sample.ts';
import { collections, type Sample, sampleOf } from './speech-material.ts';
import { SENTENCES } from './tts-sentences.ts';
import { openSynthesis, spoken, usualRecipe } from './tts-speaking.ts';
import { errorRate, sumOfErrors, wordErrors } from './word-error-rate.ts';

/**
 * Word errors of synthesised speech that is recognised again over a telephone line, for every available English voice
 * and flite (Debian), which PocketSphinx understands. The reference of the same run is people reading aloud. eSpeak NG
 * is included although PocketSphinx does not understand it; people do. Usage: node bench/tts-round-trip.ts
 */

const RATE_HZ = 16_000;
const FLITE_VOICES = ['rms', 'slt'] as const;

interface Speaker {
  name: string;
  /** 16 kHz. */
  say: (sentence: string) => Promise<Int16Array>;
}

const config = loadConfig(process.env);
const folder = await mkdtemp(join(tmpdir(), 'tandem-tts-round-trip-'));
const plane = createListeningPlane({ workers: availableParallelism() });
const recognition = await createSpeechRecognition({ settings: engineSettingsOf(config) });
const synthesis = await openSynthesis(config);
try {
  const models = (await recognition.engines()).flatMap(({ models: loaded }) => loaded);
  console.log(`words wrong, recognised by ${models.join(', ')}`);
  printRow(['speaker', '16 kHz', '8 kHz mu-law']);
  for (const speaker of [...fliteSpeakers(), ...ourSpeakers()]) await measure(speaker);
  const people = collections(0).find(({ name }) => name === 'read sentences');
  if (people !== undefined) {
    printRow([
      'people who read aloud',
      await errorsOf(people.samplesIn({ band: 'wide', snrDb: null })),
      await errorsOf(people.samplesIn({ band: 'phone', snrDb: null })),
    ]);
  }
} finally {
  await synthesis.close();
  await recognition.close();
  await plane.close();
  await rm(folder, { recursive: true, force: true });
}

async function measure({ name, say }: Speaker): Promise<void> {
  const recordings: { name: string; text: string; samples: Int16Array; sampleRateHz: number }[] = [];
  for (const [index, text] of SENTENCES.entries()) {
    recordings.push({ name: `${name}-${index}`, text, samples: await say(text), sampleRateHz: RATE_HZ });
  }
  const inBand = (band: 'wide' | 'phone') =>
    errorsOf(recordings.map((recording) => sampleOf(recording, { band, snrDb: null })));
  printRow([name, await inBand('wide'), await inBand('phone')]);
}

async function errorsOf(samples: readonly Sample[]): Promise<string> {
  const errors = [];
  for (const sample of samples) {
    errors.push(wordErrors(sample.text, await recogniseBatch(plane, recognition, sample, folder)));
  }
  return `${(100 * errorRate(sumOfErrors(errors))).toFixed(1)} %`;
}

function fliteSpeakers(): Speaker[] {
  if (spawnSync('flite', ['-lv']).status !== 0) {
    console.log("flite: left out, Debian's flite is not installed");
    return [];
  }
  return FLITE_VOICES.map((voice) => ({
    name: `flite ${voice}`,
    async say(sentence) {
      const path = join(folder, 'flite.wav');
      const { status, stderr } = spawnSync('flite', ['-voice', voice, '-t', sentence, '-o', path]);
      if (status !== 0) throw new Error(`flite failed: ${stderr}`);
      return at16kHz(await readFile(path));
    },
  }));
}

/** flite writes a plain RIFF header of 44 bytes, mono. */
function at16kHz(wav: Buffer): Int16Array {
  const sampleRateHz = wav.readUInt32LE(24);
  const samples = Int16Array.from({ length: (wav.length - 44) >> 1 }, (_, index) => wav.readInt16LE(44 + 2 * index));
  if (sampleRateHz === RATE_HZ) return samples;
  const resampler = new Resampler(sampleRateHz, RATE_HZ);
  const output = new Float32Array(resampler.outputBound(samples.length) + resampler.outputBound(0));
  let written = resampler.process(Float32Array.from(samples), samples.length, output);
  written += resampler.flush(output.subarray(written));
  return Int16Array.from(output.subarray(0, written), (sample) =>
    Math.max(-32768, Math.min(32767, Math.round(sample))),
  );
}

function ourSpeakers(): Speaker[] {
  return synthesis
    .voices()
    .filter(({ engine, name, language }) => language.startsWith('en') && (engine !== 'espeak-ng' || name === 'en-us'))
    .map((voice) => ({
      name: `${voice.engine} ${voice.name}`,
      async say(sentence) {
        const format = { encoding: 'LINEAR16', sampleRateHz: RATE_HZ } as const;
        const { audio } = await spoken(synthesis, { text: sentence, recipe: usualRecipe(voice), format });
        return new Int16Array(audio.buffer, audio.byteOffset, audio.byteLength >> 1);
      },
    }));
}

function printRow([first = '', ...cells]: readonly string[]): void {
  console.log(`${first.padEnd(34)}${cells.map((cell) => cell.padStart(14)).join('')}`);
}
