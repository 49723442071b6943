import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Resampler } from '../media/dsp/resample.ts';
import type { SpeechEncoding } from '../speech/speech-synthesis.ts';
import type { SpeechEffectSettings } from '../speech/synthesis/output/effect-chain.ts';
import { openSpeechEncoder } from '../speech/synthesis/output/open-speech-encoder.ts';
import { createSpeechEffects } from '../speech/synthesis/output/speech-effects.ts';
import { BAND_CENTRES_HZ } from '../speech/voices/voice-measures.ts';
import { spokenUtterances } from '../test/speech/spoken.ts';

/**
 * Cost of encoding synthesised samples and of speech effects, on one core: speed over real time, and CPU time compared
 * with `lame`, `opusenc` and `ffmpeg` in the same run, if installed. Usage: node bench/tts-output.ts [seconds of
 * speech]
 */

const SECONDS = Number(process.argv[2] ?? 30);
const RATE_HZ = 24_000;
/** A block of an engine: 40 ms. */
const BLOCK = 960;
const PLAIN: SpeechEffectSettings = { pitchSemitones: 0, pitchRange: 1, equaliserDb: null, gainDb: 0, enhance: false };
const EQUALISER = BAND_CENTRES_HZ.map((_, band) => 6 * Math.sin(band));

const speech = speechOf(SECONDS);
const folder = mkdtempSync(join(tmpdir(), 'tandem-bench-'));
const rawPath = join(folder, 'speech.raw');
try {
  writeFileSync(rawPath, Buffer.from(speech.buffer));
  const raw = ['-f', 's16le', '-ar', String(RATE_HZ), '-ac', '1', '-i', rawPath];
  const ffmpeg = (...args: string[]) =>
    programCpuMs('ffmpeg', ['-loglevel', 'error', '-threads', '1', ...raw, ...args]);
  console.log(`${SECONDS} s of speech at ${RATE_HZ} Hz; times real time on one core, and CPU time over the reference`);
  for (const encoding of ['LINEAR16', 'MULAW'] as const) report(encoding, await encodeCpuMs(encoding), null);
  const mp3 = await encodeCpuMs('MP3');
  report(
    'MP3',
    mp3,
    programCpuMs('lame', ['--quiet', '-r', '-s', '24', '-m', 'm', '-b', '64', rawPath, '/dev/null']),
    'lame',
  );
  report('MP3', mp3, ffmpeg('-c:a', 'libmp3lame', '-b:a', '64k', '-f', 'mp3', '-y', '/dev/null'), 'ffmpeg');
  const opus = await encodeCpuMs('OGG_OPUS');
  const opusenc = [
    '--quiet',
    '--raw',
    '--raw-rate',
    '24000',
    '--raw-chan',
    '1',
    '--bitrate',
    '48',
    rawPath,
    '/dev/null',
  ];
  report('Ogg Opus', opus, programCpuMs('opusenc', opusenc), 'opusenc');
  report('Ogg Opus', opus, ffmpeg('-c:a', 'libopus', '-b:a', '48k', '-f', 'ogg', '-y', '/dev/null'), 'ffmpeg');
  const pitch = effectsCpuMs({ ...PLAIN, pitchSemitones: 3 });
  report('no effects', effectsCpuMs(PLAIN), null);
  report('equaliser', effectsCpuMs({ ...PLAIN, equaliserDb: EQUALISER }), null);
  report('gain and limiter', effectsCpuMs({ ...PLAIN, gainDb: 3 }), null);
  report('enhancement', effectsCpuMs({ ...PLAIN, enhance: true }), null);
  report('pitch', pitch, ffmpeg('-af', 'rubberband=pitch=1.19', '-f', 'null', '-'), 'ffmpeg rubberband');
} finally {
  rmSync(folder, { recursive: true });
}

function speechOf(seconds: number): Int16Array {
  const { samples } = spokenUtterances()[0]!;
  const resampler = new Resampler(16_000, RATE_HZ);
  const output = new Float32Array(resampler.outputBound(samples.length));
  const count = resampler.process(Float32Array.from(samples), samples.length, output);
  return Int16Array.from({ length: seconds * RATE_HZ }, (_, i) => Math.round(output[i % count]!));
}

/** The first run warms up the compiler; the second is measured. */
async function encodeCpuMs(encoding: SpeechEncoding): Promise<number> {
  await encode(encoding, speech.subarray(0, 5 * RATE_HZ));
  const before = process.cpuUsage();
  await encode(encoding, speech);
  return cpuMsSince(before);
}

async function encode(encoding: SpeechEncoding, samples: Int16Array): Promise<void> {
  const encoder = await openSpeechEncoder({ encoding, sampleRateHz: RATE_HZ });
  for (let at = 0; at < samples.length; at += BLOCK) encoder.encode(samples.subarray(at, at + BLOCK));
  encoder.finish();
  encoder.close();
}

function effectsCpuMs(settings: SpeechEffectSettings): number {
  const run = (samples: Int16Array) => {
    const effects = createSpeechEffects({ sampleRateHz: RATE_HZ, ...settings });
    for (let at = 0; at < samples.length; at += BLOCK) effects.process(samples.subarray(at, at + BLOCK));
    effects.flush();
  };
  run(speech.subarray(0, 5 * RATE_HZ));
  const before = process.cpuUsage();
  run(speech);
  return cpuMsSince(before);
}

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Null if the program is missing or fails. Includes its start-up. */
function programCpuMs(program: string, args: readonly string[]): number | null {
  const shell = spawnSync('bash', ['-c', 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>&1', 'bash', program, ...args], {
    encoding: 'utf8',
  });
  if (shell.status !== 0) return null;
  const [user, system] = shell.stderr.trim().split(' ').map(Number);
  return ((user ?? 0) + (system ?? 0)) * 1000;
}

function report(what: string, cpuMs: number, referenceMs: number | null, reference = ''): void {
  const pace = `${Math.round((SECONDS * 1000) / cpuMs)} times real time`;
  const ratio = referenceMs === null || referenceMs === 0 ? '' : `, ${(cpuMs / referenceMs).toFixed(2)} x ${reference}`;
  console.log(`${what.padEnd(20)}${pace}${ratio}`);
}
