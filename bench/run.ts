import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** All benchmarks by name. Each runs in its own process, so that none warms up another. */
const BENCHMARKS = [
  'media-relay',
  'sip',
  'soak',
  'srtp',
  'g722',
  'opus',
  'transcoding',
  'dtmf',
  'api',
  'placements',
  'node',
  'ledger',
  'correction',
  'memory',
  'diarization',
  'voice-network',
  'stt-accuracy',
  'stt-pipeline',
  'stt',
  'tts',
  'tts-output',
  'tts-start',
  'tts-round-trip',
] as const;

const USAGE = `Usage: npm run bench [-- NAME ...]

Runs all benchmarks, or those named: ${BENCHMARKS.join(', ')}.
Each prints its figures as a ratio against a reference measured in the same run.
`;

const asked = process.argv.slice(2);
const unknown = asked.find((name) => !(BENCHMARKS as readonly string[]).includes(name));
if (unknown !== undefined) {
  process.stdout.write(USAGE);
  process.exitCode = asked.some((name) => name === '--help' || name === '-h') ? 0 : 2;
} else {
  for (const name of asked.length > 0 ? asked : BENCHMARKS) {
    process.stdout.write(`\n== ${name}\n`);
    const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], { stdio: 'inherit' });
    if (status !== 0) process.exitCode = status ?? 1;
  }
}
