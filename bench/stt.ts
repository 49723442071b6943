import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadConfig } from '../config.ts';
import { SampleDecoder } from '../media/listening/sample-decoder.ts';
import { createListeningPlane } from '../media/listening-plane.workers.ts';
import { createEngines, engineSettingsOf, problemOf } from '../speech/engines/available-engines.ts';
import { createSpeechRecognition } from '../speech/speech-recognition.thread.ts';
import { recogniseBatch } from './recognise-sample.ts';
import { isHeld, type LoadFigures, raiseSessions, type Step } from './stt-load.ts';
import {
  type Answer,
  FORMAT,
  FRAME_BYTES,
  type SessionOptions,
  speakBriefly,
  telephoneLine,
  UTTERANCE_END_MS,
} from './stt-session.ts';
import { type SoakFigures, shortestOf, soak } from './stt-soak.ts';
import { type Slope, usageNow } from './stt-usage.ts';

const USAGE = `Usage: node bench/stt.ts [--seconds N] [--sessions N] [--most N] [--step-seconds N] [--interim-ms N]

Live transcription with each engine that is there: how many sessions are held in real time, how long after the end of
speech the final comes, and what memory does. Takes about a minute and a half by default.

  --seconds N       length of the soak per engine, of which the second half opens and closes sessions (default 10)
  --sessions N      sessions side by side in the soak (default 2)
  --most N          sessions side by side at most when their number is raised (default 8)
  --step-seconds N  how long each number of sessions is tried (default 8)
  --interim-ms N    ask for interims at this interval (default: none, as clients that do not ask)
`;

/**
 * Recognises human speech, mu-law at 8 kHz, at telephone pace through the production pipeline: listening workers,
 * speech thread, engine processes. References in the same run: the same engine and audio in batch at full speed, and
 * the bare decoding of mu-law for the rest. On a busy machine CPU times are more reliable than wall times.
 */

const options = readOptions();
const CORES = availableParallelism();
const config = loadConfig(process.env);
const settings = engineSettingsOf(config);
const MOST_ROUNDS = 5;
const BETWEEN_ROUNDS_MS = 500;
/** Some kernels report CPU time in steps of 10 ms. */
const DECODING_MS = 500;
const PROGRESS_S = 10;
/** Garbage collectors need time. */
const RELIABLE_S = 600;
const KB = 1024;
const MB = 1024 * KB;
/** Columns of `answerCells`. */
const ANSWER_COLUMNS = ['finals', 'not heard', 'p50', 'ours', 'p99', 'ours'];

const line = telephoneLine();
const lineSpeechMs = line.spans.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
const folder = await mkdtemp(join(tmpdir(), 'tandem-stt-'));
try {
  console.log(
    `${CORES} cores, ${settings.processes} engine processes, ` +
      `${config.mediaWorkers} listening threads; ${line.spans.length} utterances in turn, ` +
      `${((100 * lineSpeechMs) / line.durationMs).toFixed(0)} % of the time is speech; utterance_end_ms ${UTTERANCE_END_MS}`,
  );
  const decoding = cpuOfBareDecoding();
  console.log(`reference, bare decoding of mu-law: ${decoding.toFixed(3)} ms of CPU per second of audio`);
  const { engines, missing } = await createEngines(settings);
  for (const { engine, problem } of missing) console.log(`${engine}: left out, ${problem}`);
  for (const engine of engines) {
    const problem = await problemOf(engine);
    const understandsEnglish = (await engine.describe()).some(({ languages }) => languages.includes('en'));
    if (understandsEnglish) await measureEngine(engine.name, decoding);
    else console.log(`${engine.name}: left out, ${problem ?? 'it has no model for English'}`);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function measureEngine(name: string, decoding: number): Promise<void> {
  process.env.BENCH_STT_ENGINE = name;
  const enginesModule = new URL('./one-engine.ts', import.meta.url);
  const plane = createListeningPlane({ workers: config.mediaWorkers });
  const recognition = await createSpeechRecognition({ settings, enginesModule });
  const parts: SessionOptions = { plane, recognition, hypothesisEveryMs: options.interimMs };
  try {
    progress(`${name}: loading`);
    const models = await warmUp(name, parts);
    console.log(`\n${name} (${models.join(', ')}), load ${loadavg()[0]!.toFixed(1)}`);
    progress(`${name}: in batch`);
    const batch = await measureBatch(parts);
    const load = await raiseSessions({
      ...parts,
      line,
      most: options.most,
      stepMs: 1000 * options.stepSeconds,
      onStep: (sessions) => progress(`${name}: ${sessions} sessions side by side`),
    });
    reportLoad(load, batch, decoding);
    let lastStatus = '';
    const soaked = await soak({
      ...parts,
      line,
      sessions: options.sessions,
      durationMs: 1000 * options.seconds,
      onProgress(phase, elapsedMs) {
        const status = `${name}: ${phase} sessions, ${PROGRESS_S * Math.floor(elapsedMs / 1000 / PROGRESS_S)} s`;
        if (status !== lastStatus) progress(status);
        lastStatus = status;
      },
    });
    reportSoak(soaked);
  } catch (error) {
    console.log(`${name}: given up, ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    await recognition.close();
    await plane.close();
  }
}

/** Runs until all recognizers are loaded, because loading is not measured. Returns the models. */
async function warmUp(name: string, parts: SessionOptions): Promise<readonly string[]> {
  for (let round = 1; ; round++) {
    const brief = { ...parts, octets: shortestOf(line) };
    await Promise.all(Array.from({ length: settings.processes }, () => speakBriefly(brief)));
    const status = (await parts.recognition.engines()).find(({ engine }) => engine === name);
    if (status === undefined) throw new Error('it is gone');
    if (status.loaded >= settings.processes || round === MOST_ROUNDS) return status.models;
    await sleep(BETWEEN_ROUNDS_MS);
  }
}

interface BatchFigures {
  /** CPU seconds of the engine processes per second of speech; null if they run elsewhere. */
  cpuPerSpeech: number | null;
  /** Busy seconds of a process, or a request, per second of speech. */
  realTimeFactor: number;
}

async function measureBatch({ plane, recognition }: SessionOptions): Promise<BatchFigures> {
  const before = usageNow();
  const beganAtMs = performance.now();
  const waiting = [...line.samples];
  const work = async (): Promise<void> => {
    for (let sample = waiting.pop(); sample !== undefined; sample = waiting.pop()) {
      await recogniseBatch(plane, recognition, sample, folder);
    }
  };
  await Promise.all(Array.from({ length: settings.processes }, work));
  const after = usageNow();
  return {
    cpuPerSpeech: after.engineProcesses === 0 ? null : (after.engineCpuMs - before.engineCpuMs) / lineSpeechMs,
    realTimeFactor: ((performance.now() - beganAtMs) * settings.processes) / lineSpeechMs,
  };
}

/** CPU milliseconds per second of audio, in stream frames. */
function cpuOfBareDecoding(): number {
  const decoder = new SampleDecoder(FORMAT, 'mixed');
  const decoded = [new Float32Array(FRAME_BYTES)];
  const decodeAll = (): void => {
    for (let at = 0; at < line.octets.length; at += FRAME_BYTES) {
      decoder.decode(line.octets.subarray(at, at + FRAME_BYTES), decoded);
    }
  };
  const decodeFor = (durationMs: number): number => {
    const untilMs = performance.now() + durationMs;
    let rounds = 0;
    for (; performance.now() < untilMs; rounds++) decodeAll();
    return rounds;
  };
  decodeFor(DECODING_MS / 4);
  const before = process.threadCpuUsage();
  const rounds = decodeFor(DECODING_MS);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / (rounds * line.durationMs);
}

function reportLoad({ steps, ...load }: LoadFigures, batch: BatchFigures, decoding: number): void {
  console.log('from the end of speech to the final; "ours" is without the utterance_end_ms that a pause has to last');
  printRow(['sessions', ...ANSWER_COLUMNS, 'latest', '  outcome']);
  for (const step of steps) {
    const { sessions, answers, latestFinalMs } = step;
    printRow([`${sessions}`, ...answerCells(answers), seconds(latestFinalMs), `  ${outcomeOf(step)}`]);
  }
  const firstLate = steps.findIndex((step) => !isHeld(step));
  const heldSteps = firstLate === -1 ? steps : steps.slice(0, firstLate);
  const heldSessions = heldSteps.findLast(({ answers }) => answers.length > 0)?.sessions ?? 0;
  const allowed = CORES / ((batch.cpuPerSpeech ?? batch.realTimeFactor) * (lineSpeechMs / line.durationMs));
  const limit = firstLate === -1 ? 'more were not tried' : `${steps[firstLate]!.sessions} were too many`;
  console.log(
    `held in real time: ${heldSessions} sessions, ${(heldSessions / CORES).toFixed(1)} per core (${limit}); ` +
      `at the speed of the batch ${allowed.toFixed(1)}: x${(heldSessions / allowed).toFixed(2)}`,
  );
  if (batch.cpuPerSpeech !== null) {
    const live = load.engineCpuMs / load.speechMs;
    console.log(
      `engine, s of CPU per second of speech: live ${live.toFixed(2)}, reference in batch ` +
        `${batch.cpuPerSpeech.toFixed(2)}: x${(live / batch.cpuPerSpeech).toFixed(2)}`,
    );
  }
  const rest = (1000 * load.mainCpuMs) / load.audioMs;
  console.log(
    `all but the engine, ms of CPU per second of audio: ${rest.toFixed(1)}, reference bare decoding ` +
      `${decoding.toFixed(3)}: x${(rest / decoding).toFixed(0)}`,
  );
  console.log(`the latest frame was played ${seconds(load.latestFrameMs)} s late, which the figures above include`);
}

function outcomeOf(step: Step): string {
  if (!isHeld(step)) return step.failure ?? (step.isShedding ? 'late, interims left out' : 'late');
  if (step.answers.length === 0) return 'no final yet';
  return 'held';
}

function reportSoak({ long, brief, mainRssBytes, engineRssBytes, engineProcesses }: SoakFigures): void {
  const { sessions, seconds: duration } = options;
  printRow(['soak', ...ANSWER_COLUMNS]);
  printRow([`${sessions}`, ...answerCells(long.answers)]);
  const caveat = duration < RELIABLE_S ? `, of which so short a soak tells nothing yet (--seconds ${RELIABLE_S})` : '';
  console.log(
    `memory at the end: this process ${megabytes(mainRssBytes)}, ${engineProcesses} engine processes ` +
      `${megabytes(engineRssBytes)}; its growth by least squares and the standard error${caveat}:`,
  );
  const perSessionHour = (slope: Slope | null) => growth(slope, MB * sessions, 'MB');
  console.log(
    `per hour and session, of ${sessions} for ${duration / 2} s: this process ${perSessionHour(long.perHour.main)}, ` +
      `engine processes ${perSessionHour(long.perHour.engine)}`,
  );
  console.log(
    `per session, of ${brief.sessions} one after the other: this process ${growth(brief.perSession.main, KB, 'kB')}, ` +
      `engine processes ${growth(brief.perSession.engine, KB, 'kB')}`,
  );
}

function answerCells(answers: readonly Answer[]): string[] {
  const afterMs = answers.flatMap((answer) => answer.afterMs ?? []).toSorted((a, b) => a - b);
  const cells = [0.5, 0.99].flatMap((share) => {
    const value = afterMs[Math.max(0, Math.ceil(share * afterMs.length) - 1)];
    return value === undefined ? ['-', '-'] : [seconds(value), seconds(value - UTTERANCE_END_MS)];
  });
  return [`${afterMs.length}`, `${answers.length - afterMs.length}`, ...cells];
}

function printRow([first = '', ...cells]: readonly string[]): void {
  console.log(`${first.padEnd(10)}${cells.map((cell) => (cell.startsWith(' ') ? cell : cell.padStart(10))).join('')}`);
}

function growth(slope: Slope | null, unitBytes: number, unit: string): string {
  if (slope === null) return 'too little to tell';
  return `${(slope.perUnit / unitBytes).toFixed(1)} ± ${(slope.error / unitBytes).toFixed(1)} ${unit}`;
}

function megabytes(bytes: number): string {
  return `${(bytes / MB).toFixed(0)} MB`;
}

function seconds(durationMs: number): string {
  return (durationMs / 1000).toFixed(2);
}

/** Progress goes to standard error, figures to standard output. */
function progress(message: string): void {
  process.stderr.write(`${(performance.now() / 1000).toFixed(0).padStart(4)} s  ${message}\n`);
}

function readOptions() {
  const values = readArguments();
  if (values.help === true) {
    process.stdout.write(USAGE);
    process.exit();
  }
  return {
    seconds: positive(values.seconds, 10),
    sessions: positive(values.sessions, 2),
    most: positive(values.most, 8),
    stepSeconds: positive(values['step-seconds'], 8),
    interimMs: values['interim-ms'] === undefined ? null : positive(values['interim-ms'], 0),
  };
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', short: 'h' },
        seconds: { type: 'string' },
        sessions: { type: 'string' },
        most: { type: 'string' },
        'step-seconds': { type: 'string' },
        'interim-ms': { type: 'string' },
      },
    }).values;
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
}

function positive(text: string | undefined, fallback: number): number {
  const value = Number(text ?? fallback);
  return Number.isInteger(value) && value > 0 ? value : refuse(`${text} is not a positive number`);
}

function refuse(reason: string): never {
  process.stderr.write(`${reason}\n\n${USAGE}`);
  process.exit(2);
}
