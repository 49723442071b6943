import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AudioFormat } from '../machines/utterances.ts';
import { Resampler } from '../media/dsp/resample.ts';
import { ChannelListener } from '../media/listening/channel-listener.ts';
import { NoiseSuppressors } from '../media/listening/noise-suppressor.ts';
import { SampleDecoder } from '../media/listening/sample-decoder.ts';
import { liveRules } from '../media/listening/segmentation-rules.ts';
import { SileroNetworks } from '../media/listening/silero-network.ts';
import type { AudioEnhancement } from '../media/listening-plane.ts';
import { asMulaw8k, spokenUtterances } from '../test/speech/spoken.ts';

/**
 * Cost of listening before recognition: telephone audio (mu-law, 8 kHz) to utterances at 16 kHz, on one core. `ffmpeg`
 * and `sox` decode and resample the same audio in the same run, first and last, because the machine's speed drifts.
 * Usage: node bench/stt-pipeline.ts [minutes of audio]
 */

const MINUTES = Number(process.argv[2] ?? 5);
/** A live frame: 60 ms. */
const FRAME_BYTES = 480;
const FORMAT: AudioFormat = { encoding: 'mulaw', sampleRateHz: 8000, channels: 1 };

const networks = await SileroNetworks.load();
const suppressors = await NoiseSuppressors.load();
if (networks.problem !== null) console.log(`without the voice network: ${networks.problem}`);
const audio = telephoneSpeech(MINUTES * 60 * 8000);
const folder = mkdtempSync(join(tmpdir(), 'tandem-bench-'));
const filePath = join(folder, 'speech.ulaw');
try {
  writeFileSync(filePath, audio);
  // Warms up the compiler.
  listen(audio.subarray(0, 60 * 8000), 'adaptive');
  resample(audio.subarray(0, 60 * 8000));
  const before = [ffmpegCpuMs(), soxCpuMs()] as const;
  const resampleMs = cpuMsOf(() => resample(audio));
  const listenMs = cpuMsOf(() => listen(audio, 'off'));
  const enhanceMs = cpuMsOf(() => listen(audio, 'adaptive'));
  const after = [ffmpegCpuMs(), soxCpuMs()] as const;
  const reference = mean(before[0], after[0]) ?? mean(before[1], after[1]);
  console.log(`${MINUTES} minutes of speech; times real time on one core, and CPU time over that of the reference`);
  report('ffmpeg: decode, resample', mean(before[0], after[0]), reference);
  report('sox: decode, resample', mean(before[1], after[1]), reference);
  report('decode, resample', resampleMs, reference);
  report('and voices, ratios, utterances', listenMs, reference);
  report('and noise suppression', enhanceMs, reference);
} finally {
  rmSync(folder, { recursive: true });
}

/** Human speech with as much silence between the utterances. */
function telephoneSpeech(octets: number): Uint8Array {
  const stream = new Uint8Array(octets).fill(0xff);
  const utterances = spokenUtterances().map(({ samples }) => asMulaw8k(samples));
  for (let at = 0, index = 0; at < octets; index++) {
    const utterance = utterances[index % utterances.length]!;
    stream.set(utterance.subarray(0, octets - at), at);
    at += 2 * utterance.length;
  }
  return stream;
}

function resample(octets: Uint8Array): void {
  const decoder = new SampleDecoder(FORMAT, 'mixed');
  const resampler = new Resampler(FORMAT.sampleRateHz, 16_000);
  const decoded = [new Float32Array(FRAME_BYTES)];
  const resampled = new Float32Array(resampler.outputBound(FRAME_BYTES));
  for (let at = 0; at < octets.length; at += FRAME_BYTES) {
    const samples = decoder.decode(octets.subarray(at, at + FRAME_BYTES), decoded);
    resampler.process(decoded[0]!, samples, resampled);
  }
}

function listen(octets: Uint8Array, enhancement: AudioEnhancement): void {
  const network = networks.create();
  let utteranceId = 0;
  const listener = new ChannelListener({
    channel: 0,
    sampleRateHz: FORMAT.sampleRateHz,
    rules: liveRules(1000),
    enhancement,
    network,
    suppressors,
    nextUtteranceId: () => utteranceId++,
    post: () => {},
    onSpeechStarted: () => {},
  });
  const decoder = new SampleDecoder(FORMAT, 'mixed');
  const decoded = [new Float32Array(FRAME_BYTES)];
  for (let at = 0; at < octets.length; at += FRAME_BYTES) {
    const samples = decoder.decode(octets.subarray(at, at + FRAME_BYTES), decoded);
    listener.front.push(decoded[0]!, samples);
  }
  listener.finish();
  listener.close();
}

function cpuMsOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

function ffmpegCpuMs(): number | null {
  const input = ['-f', 'mulaw', '-ar', '8000', '-i', filePath];
  return commandCpuMs([
    'ffmpeg',
    '-v',
    'error',
    '-threads',
    '1',
    ...input,
    '-ar',
    '16000',
    '-f',
    's16le',
    '-y',
    '/dev/null',
  ]);
}

function soxCpuMs(): number | null {
  const output = ['-t', 'raw', '-e', 'signed', '-b', '16', '-r', '16000', '/dev/null'];
  return commandCpuMs(['sox', '-t', 'ul', '-r', '8000', '-c', '1', filePath, ...output]);
}

/** Measured by bash, which reports the CPU time of a finished process; null if the command is not installed. */
function commandCpuMs(command: string[]): number | null {
  const script = 'command -v "$1" > /dev/null || exit 127; TIMEFORMAT="%U %S"; time "$@" 2> /dev/null';
  const { status, stderr } = spawnSync('bash', ['-c', script, 'bash', ...command], { encoding: 'utf8' });
  if (status !== 0) {
    console.log(`${command[0]} is not installed, or failed: left out`);
    return null;
  }
  const [user = 0, system = 0] = stderr.trim().split(/\s+/).map(Number);
  return 1000 * (user + system);
}

function mean(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : (a + b) / 2;
}

function report(contender: string, cpuMs: number | null, reference: number | null): void {
  if (cpuMs === null) return;
  const realTime = `${Math.round((MINUTES * 60_000) / cpuMs)} x`;
  const ratio = reference === null ? '' : `x${(cpuMs / reference).toFixed(2)}`;
  console.log(`${contender.padEnd(32)} ${realTime.padStart(8)}  ${ratio}`);
}
