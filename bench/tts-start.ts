import { EngineProcess } from '../speech/engine-process/engine-process.ts';
import { ESPEAK_CHILD, ESPEAK_FLAGS } from '../speech/engines/espeak-ng/espeak-engine.ts';
import { cpuMsOfFamily } from './process-family.ts';
import { SENTENCES } from './tts-sentences.ts';

/**
 * The first sentences of a new eSpeak NG process: time and CPU time, with the flags of V8 that the product sets. The
 * reference of the same run is the same process without them. Contenders alternate; the median of their rounds counts.
 * Usage: node bench/tts-start.ts
 */

const ROUNDS = 5;
const LATER = 40;

const contenders = { 'with flags': ESPEAK_FLAGS, reference: [] } as const;
type Contender = keyof typeof contenders;
const FIGURES = ['first sentence, ms', 'first sentence, CPU ms', `${LATER} later, ms`, 'all, CPU ms'] as const;

const rounds: Record<Contender, number[][]> = { 'with flags': [], reference: [] };
for (let round = 0; round < ROUNDS; round++) {
  for (const name of Object.keys(contenders) as Contender[]) rounds[name].push(await figuresOf(contenders[name]));
}
console.log(`a new process of eSpeak NG, the median of ${ROUNDS} rounds`);
for (const [index, figure] of FIGURES.entries()) {
  const [ours, reference] = [rounds['with flags'], rounds.reference].map((all) =>
    medianOf(all.map((row) => row[index]!)),
  );
  const ratio = (ours! / reference!).toFixed(2);
  console.log(`${figure.padEnd(26)} ${ours!.toFixed(0)}, x${ratio} of the reference (${reference!.toFixed(0)})`);
}

async function figuresOf(nodeFlags: readonly string[]): Promise<number[]> {
  const engine = await EngineProcess.start({ entry: ESPEAK_CHILD, nodeFlags, argument: null });
  const pid = engine.pid!;
  const loadedCpuMs = await cpuMsOfFamily(pid);
  const firstMs = await spokenMs(engine, SENTENCES[0]!);
  const firstCpuMs = (await cpuMsOfFamily(pid)) - loadedCpuMs;
  let laterMs = 0;
  for (let count = 1; count <= LATER; count++) laterMs += await spokenMs(engine, SENTENCES[count % SENTENCES.length]!);
  const cpuMs = (await cpuMsOfFamily(pid)) - loadedCpuMs;
  await engine.close();
  return [firstMs, firstCpuMs, laterMs, cpuMs];
}

async function spokenMs(engine: EngineProcess, sentence: string): Promise<number> {
  const beganAt = performance.now();
  const words = sentence.split(' ').map((spoken) => ({ spoken, phonemes: null }));
  const clause = { words, voice: 'en-us', speed: 1, pitchSemitones: 0, pitchRange: 1 };
  for await (const _ of engine.stream('speak', clause));
  return performance.now() - beganAt;
}

function medianOf(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[figures.length >> 1]!;
}
