import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig } from '../config.ts';
import type { AvailableVoice, SpeechFormat } from '../speech/speech-synthesis.ts';
import { readScript } from '../speech/text/read-script.ts';
import { USUAL_STYLE } from '../speech/voices/voice-recipe.ts';
import { TICK_MS, usageNow } from './stt-usage.ts';
import { SENTENCES } from './tts-sentences.ts';
import { openSynthesis, spoken, usualRecipe } from './tts-speaking.ts';

/**
 * Text to speech through the synthesis thread and its engine processes: time to the first audio, speed over real time,
 * and memory per stream, for every engine with an English voice. The reference of the same run is the `espeak-ng`
 * program (Debian), one process per text. Every text is new, so nothing comes from the cache. Usage: node bench/tts.ts
 */

const STREAMS = [1, 5, 20];
const TEXTS_PER_STEP = 120;
const SENTENCES_PER_TEXT = 3;
const HELD_STREAMS = 100;
const HELD_SENTENCES = 60;
const SETTLE_MS = 300;
const WAV_HEADER_BYTES = 44;
const FORMATS: readonly SpeechFormat[] = [
  { encoding: 'LINEAR16', sampleRateHz: 24_000 },
  { encoding: 'MULAW', sampleRateHz: 8_000 },
  { encoding: 'MP3', sampleRateHz: 24_000 },
  { encoding: 'OGG_OPUS', sampleRateHz: 24_000 },
];

const config = loadConfig(process.env);
const synthesis = await openSynthesis(config);
let texts = 0;
try {
  const cores = availableParallelism();
  console.log(
    `${cores} cores, ${config.ttsProcesses} engine processes, load ${loadavg()[0]!.toFixed(1)}; ` +
      `texts of ${SENTENCES_PER_TEXT} sentences, the first audio in ms from the request`,
  );
  const reference = spawnSync('espeak-ng', ['--version']).status === 0;
  if (!reference) console.log("reference left out: Debian's espeak-ng is not installed");
  const voices = synthesis.voices().filter(({ language }) => language.startsWith('en'));
  for (const engine of new Set(voices.map((voice) => voice.engine))) {
    const voice =
      voices.find((each) => each.engine === engine && each.name === 'en-us') ??
      voices.find((each) => each.engine === engine);
    if (voice !== undefined) await measureEngine(voice, reference && engine === 'espeak-ng');
  }
} finally {
  await synthesis.close();
}

async function measureEngine(voice: AvailableVoice, reference: boolean): Promise<void> {
  console.log(`\n${voice.engine}, voice ${voice.name}`);
  // Processes start on first use, and their code is compiled as it runs.
  await inParallel(config.ttsProcesses, 4 * config.ttsProcesses, () => speak(voice, FORMATS[0]!));
  printRow(['', 'streams', 'p50', 'p99', 'x real time', 'per core']);
  for (const streams of STREAMS) {
    const ours = await measured(streams, () => speak(voice, FORMATS[0]!));
    printFigures('Tandem, LINEAR16 24 kHz', streams, ours);
    if (!reference) continue;
    const theirs = await measured(streams, speakByProgram);
    printFigures('reference: espeak-ng', streams, theirs);
    printRow([
      '  Tandem over reference',
      '',
      ratio(ours.firstMs(0.5), theirs.firstMs(0.5)),
      ratio(ours.firstMs(0.99), theirs.firstMs(0.99)),
      ratio(ours.realTime, theirs.realTime),
      ratio(ours.perCore, theirs.perCore),
    ]);
  }
  for (const format of FORMATS.slice(1)) {
    const figures = await measured(STREAMS[1]!, () => speak(voice, format));
    printFigures(`Tandem, ${format.encoding} ${format.sampleRateHz / 1000} kHz`, STREAMS[1]!, figures);
  }
  await measureMemory(voice);
}

interface Spoken {
  firstMs: number;
  durationMs: number;
}

interface Figures {
  firstMs: (share: number) => number;
  realTime: number;
  /** Audio over CPU time of all processes. */
  perCore: number;
}

async function measured(streams: number, say: () => Promise<Spoken>): Promise<Figures> {
  const cpuBefore = cpuMs();
  const beganAt = performance.now();
  const all = await inParallel(streams, TEXTS_PER_STEP, say);
  const elapsedMs = performance.now() - beganAt;
  const spentMs = cpuMs() - cpuBefore;
  const firsts = all.map(({ firstMs }) => firstMs).toSorted((a, b) => a - b);
  const audioMs = all.reduce((sum, { durationMs }) => sum + durationMs, 0);
  return {
    firstMs: (share) => firsts[Math.ceil(share * firsts.length) - 1]!,
    realTime: audioMs / elapsedMs,
    perCore: audioMs / spentMs,
  };
}

/** CPU of this process, its threads, and its child processes, running or exited. */
function cpuMs(): number {
  const { mainCpuMs, engineCpuMs } = usageNow();
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return mainCpuMs + engineCpuMs + TICK_MS * (Number(fields[13]) + Number(fields[14]));
}

async function speak(voice: AvailableVoice, format: SpeechFormat): Promise<Spoken> {
  return await spoken(synthesis, { text: nextText(), recipe: usualRecipe(voice), format });
}

function speakByProgram(): Promise<Spoken> {
  const beganAt = performance.now();
  // Standard input is the text: an argument that begins with a dash would be an option.
  const program = spawn('espeak-ng', ['-v', 'en-us', '-s', '150', '--stdout', '--stdin'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  program.stdin.end(nextText());
  let bytes = 0;
  let firstMs = 0;
  program.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (firstMs === 0 && bytes > WAV_HEADER_BYTES) firstMs = performance.now() - beganAt;
  });
  return new Promise((resolve, reject) => {
    program.on('error', reject);
    program.on('close', () => resolve({ firstMs, durationMs: (bytes - WAV_HEADER_BYTES) / 2 / 22.05 }));
  });
}

/** Opens streams that have their first audio and whose readers stop reading. */
async function measureMemory(voice: AvailableVoice): Promise<void> {
  const before = rssBytes();
  const ended = new AbortController();
  const held = await Promise.all(
    Array.from({ length: HELD_STREAMS }, async () => {
      const recipe = usualRecipe(voice);
      const script = readScript(longText(), { language: recipe.language });
      const parts = synthesis.speak({ script, recipe, style: USUAL_STYLE, format: FORMATS[0]! }, ended.signal);
      await parts.next();
      return parts;
    }),
  );
  await sleep(SETTLE_MS);
  const perStream = (rssBytes() - before) / held.length;
  ended.abort();
  console.log(
    `memory: ${(perStream / 1024).toFixed(0)} kB for each of ${held.length} streams that are held up by their listeners`,
  );
}

function rssBytes(): number {
  const { mainRssBytes, engineRssBytes } = usageNow();
  return mainRssBytes + engineRssBytes;
}

function nextText(): string {
  return textOf(SENTENCES_PER_TEXT);
}

function longText(): string {
  return textOf(HELD_SENTENCES);
}

/** Never returns the same text twice. */
function textOf(count: number): string {
  texts += 1;
  const sentences = Array.from({ length: count }, (_, index) => SENTENCES[(7 * texts + index) % SENTENCES.length]!);
  return `Number ${texts}: ${sentences.join(' ')}`;
}

async function inParallel<T>(parallel: number, count: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let begun = 0;
  const worker = async () => {
    while (begun++ < count) results.push(await work());
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return results;
}

function printFigures(name: string, streams: number, { firstMs, realTime, perCore }: Figures): void {
  printRow([
    name,
    `${streams}`,
    firstMs(0.5).toFixed(1),
    firstMs(0.99).toFixed(1),
    realTime.toFixed(0),
    perCore.toFixed(0),
  ]);
}

function ratio(ours: number, theirs: number): string {
  return `x${(ours / theirs).toFixed(2)}`;
}

function printRow([first = '', ...cells]: readonly string[]): void {
  console.log(`${first.padEnd(28)}${cells.map((cell) => cell.padStart(12)).join('')}`);
}
