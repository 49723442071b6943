import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { VoiceContender, VoiceContenderResult } from './voice-network-contender.ts';

/**
 * CPU time of the voice detector's network per second of speech, compared with sherpa-onnx running the same model file
 * on one thread. Each runs in its own process (sherpa-onnx contains GPL code), the reference first and last.
 */

const first = await measure('sherpa-onnx');
const tandem = await measure('tandem');
const last = await measure('sherpa-onnx');
const reference = (costOf(first) + costOf(last)) / 2;
report('sherpa-onnx', reference, first);
report('tandem', costOf(tandem), tandem);
const differing = [...tandem.verdicts].filter((verdict, index) => verdict !== first.verdicts[index]).length;
console.log(`verdicts that differ: ${differing} of ${tandem.verdicts.length}`);

async function measure(contender: VoiceContender): Promise<VoiceContenderResult> {
  const child = fork(join(import.meta.dirname, 'voice-network-contender.ts'), [contender], { execArgv: [] });
  const [result] = (await once(child, 'message', { signal: AbortSignal.timeout(60_000) })) as [VoiceContenderResult];
  return result;
}

function costOf({ cpuMs, speechSeconds }: VoiceContenderResult): number {
  return cpuMs / speechSeconds;
}

function report(name: string, cost: number, { memoryMb }: VoiceContenderResult): void {
  const ratio = `x${(cost / reference).toFixed(2)}`;
  console.log(
    `${name.padEnd(12)} ${cost.toFixed(2)} ms CPU per second of speech  ${ratio}  ${Math.round(memoryMb)} MB`,
  );
}
