import type { FileHandle } from 'node:fs/promises';
import type { AudioFormat } from '../../machines/utterances.ts';

export interface SampleLayout {
  container: string;
  offset: number;
  /** Limited to the actual file size. */
  bytes: number;
  format: AudioFormat;
  /** The header announces more samples than the file holds. */
  isTruncated: boolean;
}

/**
 * Reads the header of a WAV (RIFF, "Multimedia Programming Interface" 1991; WAVE_FORMAT_EXTENSIBLE, 2001) or AU file
 * (Sun, 1992) without trusting it. Null for other files, channels, widths, rates and compression.
 */
export async function readSampleLayout(handle: FileHandle, fileBytes: number): Promise<SampleLayout | null> {
  const head = await readAt(handle, 0, 24);
  if (head.toString('latin1', 0, 4) === '.snd' && head.length === 24) return auLayout(head, fileBytes);
  if (head.toString('latin1', 0, 4) !== 'RIFF' || head.toString('latin1', 8, 12) !== 'WAVE') return null;
  return await wavLayout(handle, fileBytes);
}

/** Corrections of ffmpeg's reading of a WAV file. */
export interface WavHints {
  /** For samples whose valid bits need fewer or more bytes than they have. */
  decoder: string | null;
  /** Factor from the duration that ffmpeg derives from the valid bits to the real one. */
  durationScale: number;
  /** For one or two channels of unusual loudspeakers: ffmpeg plays one left at both sides, and rejects others. */
  layout: 'mono' | 'stereo' | null;
  /** RF64 of a writer that could not go back to write the length. */
  hasNoLength: boolean;
}

/**
 * Finds what ffmpeg misreads in linear and floating-point PCM of WAVE_FORMAT_EXTENSIBLE. It reads only as many bytes per
 * sample as the valid bits need: 24 valid bits in 32 become noise. Null for other files.
 */
export async function readWavHints(handle: FileHandle, fileBytes: number): Promise<WavHints | null> {
  const head = await readAt(handle, 0, 12);
  if (!/^(?:RIFF|RF64|BW64).{4}WAVE$/s.test(head.toString('latin1'))) return null;
  let hasNoLength = false;
  for await (const { id, offset, bytes } of wavChunks(handle, fileBytes)) {
    if (id === 'ds64') hasNoLength = (await readAt(handle, offset + 8, 8)).equals(Buffer.alloc(8));
    if (id !== 'fmt ') continue;
    const hints = hintsOf(await readAt(handle, offset, Math.min(bytes, 40)));
    return hints && { ...hints, hasNoLength };
  }
  return null;
}

function hintsOf(body: Buffer): Omit<WavHints, 'hasNoLength'> | null {
  if (body.length < 16) return null;
  const tag = body.readUInt16LE(0);
  const kind = tag === EXTENSIBLE ? extensibleKind(body) : tag;
  if (kind !== PCM && kind !== FLOAT) return null;
  const channels = body.readUInt16LE(2);
  const validBits = (tag === EXTENSIBLE && body.readUInt16LE(18)) || body.readUInt16LE(14);
  const sampleBytes = body.readUInt16LE(12) / channels;
  const usedBytes = Math.ceil(validBits / 8);
  const decoder = `pcm_${kind === FLOAT ? 'f' : 's'}${sampleBytes * 8}le`;
  const isMisread = usedBytes > 0 && usedBytes !== sampleBytes && MISREAD_DECODERS.has(decoder);
  const loudspeakers = tag === EXTENSIBLE ? body.readUInt32LE(20) : 0;
  const [layout, usual] = USUAL_LOUDSPEAKERS[channels] ?? [null, 0];
  return {
    decoder: isMisread ? decoder : null,
    durationScale: isMisread ? usedBytes / sampleBytes : 1,
    layout: loudspeakers === 0 || loudspeakers === usual ? null : layout,
  };
}

/** By the number of channels: center, or left and right. */
const USUAL_LOUDSPEAKERS: Record<number, readonly ['mono' | 'stereo', number]> = { 1: ['mono', 4], 2: ['stereo', 3] };
const MISREAD_DECODERS: ReadonlySet<string> = new Set([
  'pcm_s16le',
  'pcm_s24le',
  'pcm_s32le',
  'pcm_f32le',
  'pcm_f64le',
]);

/** Rates that the resampler supports; ffmpeg converts others to 16 kHz. */
const SAMPLE_RATES_HZ = [8_000, 16_000, 24_000, 44_100, 48_000];
/** More chunks before the samples than in any real file. */
const MOST_CHUNKS = 64;
const PCM = 1;
const FLOAT = 3;
const ALAW = 6;
const MULAW = 7;
const EXTENSIBLE = 0xfffe;
/** End of a GUID that wraps a format number: the bytes after the first two. */
const SHORT_LIST_GUID = Buffer.from('000000001000800000aa00389b71', 'hex');

async function wavLayout(handle: FileHandle, fileBytes: number): Promise<SampleLayout | null> {
  let format: AudioFormat | null = null;
  for await (const { id, offset, bytes } of wavChunks(handle, fileBytes)) {
    if (id === 'fmt ') {
      format = wavFormat(await readAt(handle, offset, Math.min(bytes, 40)));
      if (format === null) return null;
    }
    if (id === 'data') {
      if (format === null) return null;
      const isEmpty = bytes === 0 && (await isChunk(handle, offset, fileBytes));
      return { container: 'wav', offset, format, ...extentOf(bytes, isEmpty ? 0 : fileBytes - offset) };
    }
  }
  return null;
}

async function* wavChunks(handle: FileHandle, fileBytes: number) {
  let at = 12;
  for (let chunks = 0; chunks < MOST_CHUNKS && at + 8 <= fileBytes; chunks++) {
    const header = await readAt(handle, at, 8);
    if (header.length < 8) return;
    const bytes = header.readUInt32LE(4);
    yield { id: header.toString('latin1', 0, 4), offset: at + 8, bytes };
    at += 8 + bytes + (bytes & 1);
  }
}

/** Chunks that follow the samples. */
const LATER_CHUNKS: ReadonlySet<string> = new Set([
  ...['LIST', 'id3 ', 'ID3 ', 'bext', 'cue ', 'fact', 'smpl', 'inst', 'JUNK', 'PEAK', 'iXML', '_PMX', 'afsp'],
]);

async function isChunk(handle: FileHandle, at: number, fileBytes: number): Promise<boolean> {
  const header = await readAt(handle, at, 8);
  if (header.length < 8 || !LATER_CHUNKS.has(header.toString('latin1', 0, 4))) return false;
  return at + 8 + header.readUInt32LE(4) <= fileBytes;
}

function wavFormat(body: Buffer): AudioFormat | null {
  if (body.length < 16) return null;
  const tag = body.readUInt16LE(0);
  const kind = tag === EXTENSIBLE ? extensibleKind(body) : tag;
  const encoding = kind === PCM ? 'linear16' : kind === MULAW ? 'mulaw' : kind === ALAW ? 'alaw' : null;
  if (encoding === null) return null;
  const sampleBytes = encoding === 'linear16' ? 2 : 1;
  const channels = body.readUInt16LE(2);
  const isAsExpected = body.readUInt16LE(14) === sampleBytes * 8 && body.readUInt16LE(12) === sampleBytes * channels;
  return isAsExpected ? formatOf(encoding, body.readUInt32LE(4), channels) : null;
}

function extensibleKind(body: Buffer): number | null {
  if (body.length < 40 || !body.subarray(26, 40).equals(SHORT_LIST_GUID)) return null;
  return body.readUInt16LE(24);
}

function auLayout(head: Buffer, fileBytes: number): SampleLayout | null {
  const offset = head.readUInt32BE(4);
  const kind = head.readUInt32BE(12);
  const encoding = kind === 1 ? 'mulaw' : kind === 27 ? 'alaw' : null;
  if (encoding === null || offset < 24 || offset > fileBytes) return null;
  const format = formatOf(encoding, head.readUInt32BE(16), head.readUInt32BE(20));
  if (format === null) return null;
  return { container: 'au', offset, format, ...extentOf(head.readUInt32BE(8), fileBytes - offset) };
}

function formatOf(encoding: AudioFormat['encoding'], sampleRateHz: number, channels: number): AudioFormat | null {
  if (!SAMPLE_RATES_HZ.includes(sampleRateHz) || (channels !== 1 && channels !== 2)) return null;
  return { encoding, sampleRateHz, channels };
}

/** Streaming writers write 0 or about the maximum for an unknown length; SoX writes 0x7ffff000. */
function extentOf(claimedBytes: number, availableBytes: number): { bytes: number; isTruncated: boolean } {
  const isUnknown = claimedBytes === 0 || claimedBytes >= 0x7fff0000;
  if (isUnknown) return { bytes: availableBytes, isTruncated: false };
  return { bytes: Math.min(claimedBytes, availableBytes), isTruncated: claimedBytes > availableBytes };
}

async function readAt(handle: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  const { bytesRead } = await handle.read(buffer, 0, bytes, position);
  return buffer.subarray(0, bytesRead);
}
