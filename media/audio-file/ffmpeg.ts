import { constants } from 'node:fs';
import { access, open } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TandemError } from '../../machines/errors.ts';
import { RECOGNITION_RATE_HZ } from '../../machines/utterances.ts';
import { runConfined } from '../../runtime/confined-process.ts';
import { readWavHints, type WavHints } from './sample-layout.ts';

/** An ffmpeg program. Both kinds take the same arguments and write to standard output. */
export interface FfmpegProgram {
  kind: 'system' | 'bundled';
  command: readonly string[];
}

/** The WebAssembly build of the `@ffmpeg/core` package: slower, but always available. */
export const BUNDLED_FFMPEG: FfmpegProgram = {
  kind: 'bundled',
  command: [
    process.execPath,
    // Most files need few of its functions. Validating all 32 MB takes more CPU time than decoding a short file.
    '--wasm-lazy-validation',
    fileURLToPath(new URL('./ffmpeg-wasm.ts', import.meta.url)),
  ],
};

/** The system's ffmpeg, if it is on the PATH, else the bundled one. */
export async function findFfmpeg(): Promise<FfmpegProgram> {
  for (const folder of (process.env.PATH ?? '').split(delimiter).filter(isAbsolute)) {
    const file = join(folder, 'ffmpeg');
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return { kind: 'system', command: [file] };
  }
  return BUNDLED_FFMPEG;
}

export interface DecodeOptions {
  program: FfmpegProgram;
  inputPath: string;
  /** Created, readable only by its owner. */
  wavPath: string;
  /** Decoding stops one second later. */
  longestMs: number;
  signal: AbortSignal;
  /** Default: 16 kHz, mono or stereo like the file. */
  format?: { sampleRateHz: number; channels: 1 };
}

export interface Decoded {
  container: string;
  /** Duration in the container's header; null if it is missing or estimated. */
  promisedMs: number | null;
  isDamaged: boolean;
}

/**
 * Decodes the first audio stream of a file into a 16-bit WAV file.
 * @throws TandemError `AUDIO_NOT_READABLE`, `AUDIO_STREAM_MISSING`, `AUDIO_TOO_LONG` for too many samples; the signal's
 * reason when aborted
 */
export async function decodeToWav(options: DecodeOptions): Promise<Decoded> {
  const { program, inputPath, wavPath, longestMs, signal, format = null } = options;
  const seconds = Math.ceil(longestMs / 1000) + 1;
  const sampleRateHz = format?.sampleRateHz ?? RECOGNITION_RATE_HZ;
  const fileBytes = HEADER_BYTES + seconds * sampleRateHz * 2 * 2;
  const layouts = format === null ? 'mono|stereo' : 'mono';
  // By default a downmix drops the bass channel, which may be a microphone if the file names no loudspeakers.
  const hints = await wavHintsOf(inputPath);
  const filter = `${filterOf(hints)}aresample=lfe_mix_level=1,aformat=sample_fmts=s16:sample_rates=${sampleRateHz}:channel_layouts=${layouts}`;
  const tooLarge = new AbortController();
  const report = createReport((samples) => {
    if (samples > MOST_SAMPLES) tooLarge.abort(tooManySamples());
  });
  const output = await open(wavPath, 'wx', 0o600);
  try {
    const exitCode = await runConfined({
      command: [...program.command, ...argumentsFor({ inputPath, hints, seconds, fileBytes, filter })],
      stdoutFd: output.fd,
      onStderr: (text) => report.take(text),
      // V8 reserves terabytes of address space for the bundled one, which limits its memory itself.
      memoryBytes: program.kind === 'system' ? MOST_MEMORY_BYTES : null,
      cpuSeconds: MOST_CPU_SECONDS,
      fileBytes,
      signal: AbortSignal.any([signal, tooLarge.signal]),
    });
    if (exitCode >= NOT_STARTED_FROM && exitCode <= NOT_STARTED_TO)
      throw new Error(`ffmpeg cannot be run: ${exitCode}`);
    const { size } = await output.stat();
    const { container, hasAudio, errors, ...reported } = report.conclude();
    const promisedMs = reported.promisedMs && reported.promisedMs * (hints?.durationScale ?? 1);
    if (size > 0) return { container: container ?? 'unknown', promisedMs, isDamaged: exitCode !== 0 || errors > 0 };
    if (container !== null && !hasAudio) {
      throw new TandemError('AUDIO_STREAM_MISSING', 'The file contains no audio.');
    }
    throw new TandemError('AUDIO_NOT_READABLE', 'Unsupported or invalid audio file.');
  } finally {
    await output.close();
  }
}

async function wavHintsOf(path: string): Promise<WavHints | null> {
  await using handle = await open(path, 'r');
  return await readWavHints(handle, (await handle.stat()).size);
}

function filterOf(hints: WavHints | null): string {
  if (hints === null || hints.layout === null) return '';
  return `channelmap=map=${hints.layout === 'mono' ? '0' : '0|1'}:channel_layout=${hints.layout},`;
}

const HEADER_BYTES = 4096;
/** Exit codes of the shell: it could not set a limit (ours), run or find the file (POSIX sh, 2.8.2). */
const NOT_STARTED_FROM = 125;
const NOT_STARTED_TO = 127;
const MOST_MEMORY_BYTES = 2 ** 31;
/** The bundled program decodes an hour of speech in less than 10 s. */
const MOST_CPU_SECONDS = 60;
/** In all channels, before resampling: 70 minutes of stereo at 48 kHz. A few kilobytes can claim hours at 655 kHz. */
const MOST_SAMPLES = 70 * 60 * 48_000 * 2;

/**
 * Self-contained containers. Playlists and scripts (hls, concat, dash, lavfi) could read other files of this machine.
 */
const CONTAINERS = [
  ...['aac', 'ac3', 'aiff', 'amr', 'amrnb', 'amrwb', 'ape', 'asf', 'au', 'avi', 'caf', 'dts', 'eac3', 'flac', 'flv'],
  ...['g722', 'gsm', 'matroska', 'mov', 'mp3', 'mpc', 'mpc8', 'mpeg', 'mpegts', 'mxf', 'nut', 'ogg', 'oma', 'rm'],
  ...['sbc', 'shn', 'sox', 'spx', 'tak', 'tta', 'voc', 'w64', 'wav', 'wv', 'wtv'],
].join(',');

function argumentsFor({
  inputPath,
  hints,
  seconds,
  fileBytes,
  filter,
}: {
  inputPath: string;
  hints: WavHints | null;
  seconds: number;
  fileBytes: number;
  filter: string;
}): string[] {
  return [
    ...['-nostdin', '-hide_banner', '-nostats', '-loglevel', 'level+info'],
    ...['-protocol_whitelist', 'file,pipe', '-format_whitelist', CONTAINERS, '-threads', '1'],
    ...(hints === null || hints.decoder === null ? [] : ['-c:a', hints.decoder]),
    ...(hints?.hasNoLength ? ['-ignore_length', '1'] : []),
    ...['-i', `file:${inputPath}`, '-map', '0:a:0', '-vn', '-sn', '-dn', '-map_metadata', '-1', '-af', filter],
    ...['-fflags', '+bitexact', '-t', String(seconds), '-fs', String(fileBytes), '-f', 'wav', 'pipe:1'],
  ];
}

function tooManySamples(): TandemError {
  const message = 'The audio has too many samples. Send it in parts, with one or two channels at up to 48 kHz.';
  return new TandemError('AUDIO_TOO_LONG', message, { details: { most_samples: MOST_SAMPLES } });
}

/** Parses a layout as ffmpeg names it: `mono`, `stereo`, `5.1(side)`, `7.1.4`, `hexadecagonal`, `24 channels`. */
function channelsOf(layout: string): number {
  if (layout === 'mono') return 1;
  if (layout === 'stereo' || layout === 'downmix') return 2;
  const named = /^(\d+) channels/.exec(layout)?.[1];
  if (named !== undefined) return Number(named);
  const speakers = /^\d+(\.\d+)+/.exec(layout)?.[0].split('.') ?? [];
  return speakers.length > 0 ? speakers.reduce((sum, count) => sum + Number(count), 0) : MOST_NAMED_CHANNELS;
}

/** `hexadecagonal`, the largest layout named by a word. */
const MOST_NAMED_CHANNELS = 16;

/** Parses ffmpeg's report as it is written. Keeps no text, because names and tags are untrusted. */
function createReport(onSamples: (promised: number) => void) {
  let rest = '';
  let container: string | null = null;
  let hasAudio = false;
  let promisedMs: number | null = null;
  let isGuess = false;
  let errors = 0;

  function takeLine(line: string): void {
    container ??= /^\[info\] Input #0, ([a-z0-9_]+)/.exec(line)?.[1] ?? null;
    hasAudio ||= /^\[info\] {3}Stream #0:\d+.*: Audio: /.test(line);
    const [, rateHz, layout] = /^\[info\] {3}Stream #0:\d+.*: Audio: .*?, (\d+) Hz, ([^,]+)/.exec(line) ?? [];
    if (layout !== undefined) onSamples(((promisedMs ?? 0) / 1000) * Number(rateHz) * channelsOf(layout));
    isGuess ||= line.includes('Estimating duration from bitrate');
    const [, hours, minutes, seconds] = /^\[info\] {3}Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)/.exec(line) ?? [];
    if (seconds !== undefined) promisedMs ??= (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
    if (/^(\[.{1,80}\] )?\[(error|fatal)\]/.test(line)) errors += 1;
  }

  return {
    take(text: string): void {
      const lines = (rest + text).split('\n');
      // Limits the memory for a line without an end.
      rest = (lines.pop() ?? '').slice(0, 4096);
      for (const line of lines) takeLine(line);
    },
    conclude() {
      takeLine(rest);
      return { container, hasAudio, promisedMs: isGuess ? null : promisedMs, errors };
    },
  };
}
