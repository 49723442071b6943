import { type FileHandle, open, readFile } from 'node:fs/promises';
import { writeFully } from '../runtime/write-fully.ts';

/**
 * WAV files of 16-bit PCM (RIFF, "Multimedia Programming Interface" 1991). The writer streams: the header is correct
 * after every rewrite, and `repairWav` fixes it for later bytes.
 */

export const WAV_HEADER_BYTES = 44;

export interface WavFormat {
  channels: number;
  sampleRateHz: number;
}

/** The 44 byte header of a 16-bit PCM file with `dataBytes` of audio, limited to 32 bits. */
export function wavHeader(format: WavFormat, dataBytes: number): Buffer {
  const header = Buffer.alloc(WAV_HEADER_BYTES);
  const blockBytes = format.channels * 2;
  const shownBytes = Math.min(dataBytes, 0xffffffff - 36);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(36 + shownBytes, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(format.channels, 22);
  header.writeUInt32LE(format.sampleRateHz, 24);
  header.writeUInt32LE(format.sampleRateHz * blockBytes, 28);
  header.writeUInt16LE(blockBytes, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(shownBytes, 40);
  return header;
}

/** Changes the length in a header of `wavHeader`. Returns other bytes unchanged. */
export function withDataBytes(header: Buffer, dataBytes: number): Buffer {
  const format = parseWavHeader(header);
  return format === null ? header : wavHeader(format, dataBytes);
}

/** A growing WAV file. Wait for each promise before the next call, as `RecordingFile` does. */
export class WavFileWriter {
  readonly filePath: string;
  readonly #format: WavFormat;
  readonly #handle: FileHandle;
  #dataBytes = 0;

  private constructor(filePath: string, format: WavFormat, handle: FileHandle) {
    this.filePath = filePath;
    this.#format = format;
    this.#handle = handle;
  }

  /** Creates or truncates the file, readable only by its owner, and writes a header with zero length. */
  static async open(filePath: string, format: WavFormat): Promise<WavFileWriter> {
    const handle = await open(filePath, 'w', 0o600);
    try {
      await writeFully(handle, wavHeader(format, 0), 0);
    } catch (error) {
      await handle.close().catch(() => {});
      throw error;
    }
    return new WavFileWriter(filePath, format, handle);
  }

  /** Bytes of audio written so far; the file is 44 bytes longer. */
  get dataBytes(): number {
    return this.#dataBytes;
  }

  /** Appends interleaved s16le bytes. Do not modify `chunk` until the promise settles. */
  async append(chunk: Uint8Array): Promise<void> {
    await writeFully(this.#handle, chunk, WAV_HEADER_BYTES + this.#dataBytes);
    this.#dataBytes += chunk.length;
  }

  async rewriteHeader(): Promise<void> {
    await writeFully(this.#handle, wavHeader(this.#format, this.#dataBytes), 0);
  }

  /** Completes the header and closes the file, even if writing fails. */
  async finish(): Promise<void> {
    try {
      await this.rewriteHeader();
    } finally {
      await this.#handle.close();
    }
  }

  /** Closes without another write. `repairWav` completes the file. */
  async abandon(): Promise<void> {
    await this.#handle.close();
  }
}

/** Duration of a file that starts with a header of `wavHeader`; 0 for any other. */
export function wavDurationMs(header: Buffer, fileBytes: number): number {
  const format = parseWavHeader(header);
  if (format === null) return 0;
  const frames = Math.max(0, fileBytes - WAV_HEADER_BYTES) / (2 * format.channels);
  return (frames * 1000) / format.sampleRateHz;
}

type WavRepair =
  /** The header was already correct. */
  | { outcome: 'whole'; bytes: number }
  | { outcome: 'repaired'; bytes: number; bytesCut: number }
  /** Not a file of this module; unchanged. */
  | { outcome: 'not-wav'; bytes: number };

/**
 * Repairs the recording of a killed process: cuts an incomplete sample frame and writes the actual lengths. A file cut
 * off inside its header becomes an empty stereo 8 kHz one. Idempotent.
 * @throws the file system's error (`ENOENT`, `EACCES`, ...).
 */
export async function repairWav(filePath: string): Promise<WavRepair> {
  const handle = await open(filePath, 'r+');
  try {
    const { size } = await handle.stat();
    const header = Buffer.alloc(WAV_HEADER_BYTES);
    const { bytesRead } = await handle.read(header, 0, WAV_HEADER_BYTES, 0);
    if (bytesRead < WAV_HEADER_BYTES) {
      const empty = wavHeader({ channels: 2, sampleRateHz: 8000 }, 0);
      const startsLikeOurs = header
        .subarray(0, Math.min(bytesRead, 4))
        .equals(empty.subarray(0, Math.min(bytesRead, 4)));
      if (!startsLikeOurs) return { outcome: 'not-wav', bytes: size };
      await writeFully(handle, empty, 0);
      return { outcome: 'repaired', bytes: WAV_HEADER_BYTES, bytesCut: 0 };
    }
    const format = parseWavHeader(header);
    if (format === null) return { outcome: 'not-wav', bytes: size };
    const bytesCut = (size - WAV_HEADER_BYTES) % (format.channels * 2);
    const wholeBytes = size - bytesCut;
    const right = wavHeader(format, wholeBytes - WAV_HEADER_BYTES);
    if (bytesCut === 0 && right.equals(header)) return { outcome: 'whole', bytes: size };
    if (bytesCut > 0) await handle.truncate(wholeBytes);
    await writeFully(handle, right, 0);
    return { outcome: 'repaired', bytes: wholeBytes, bytesCut };
  } finally {
    await handle.close();
  }
}

interface WavContent extends WavFormat {
  durationMs: number;
  /** One array per channel; for recordings `[agent, customer]`. */
  samples: Int16Array[];
}

/**
 * Reads a whole 16-bit PCM file, skipping unknown chunks. Limits the header's lengths to the file size.
 * @throws RangeError for any other file.
 */
export async function readWav(filePath: string): Promise<WavContent> {
  return parseWav(await readFile(filePath));
}

/** As `readWav`, from bytes. */
export function parseWav(file: Buffer): WavContent {
  if (file.length < 12 || file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, 12) !== 'WAVE') {
    throw new RangeError('not a RIFF/WAVE file');
  }
  let format: WavFormat | null = null;
  let offset = 12;
  while (offset + 8 <= file.length) {
    const id = file.toString('latin1', offset, offset + 4);
    const chunkBytes = file.readUInt32LE(offset + 4);
    const body = file.subarray(offset + 8, offset + 8 + chunkBytes);
    if (id === 'fmt ') {
      if (body.length < 16 || body.readUInt16LE(0) !== 1 || body.readUInt16LE(14) !== 16) break;
      format = { channels: body.readUInt16LE(2), sampleRateHz: body.readUInt32LE(4) };
    }
    if (id === 'data' && format !== null && format.channels > 0 && format.sampleRateHz > 0) {
      return { ...format, ...deinterleave(body, format) };
    }
    offset += 8 + chunkBytes + (chunkBytes & 1);
  }
  throw new RangeError('not a 16-bit PCM WAV file');
}

function deinterleave(body: Buffer, format: WavFormat): { durationMs: number; samples: Int16Array[] } {
  const frames = Math.floor(body.length / (format.channels * 2));
  const samples = Array.from({ length: format.channels }, () => new Int16Array(frames));
  for (let frame = 0; frame < frames; frame++) {
    for (let channel = 0; channel < format.channels; channel++) {
      samples[channel]![frame] = body.readInt16LE((frame * format.channels + channel) * 2);
    }
  }
  return { durationMs: (frames * 1000) / format.sampleRateHz, samples };
}

/** The format of a 44 byte header of `wavHeader`, with any lengths; null for any other. */
export function parseWavHeader(header: Buffer): WavFormat | null {
  if (header.length !== WAV_HEADER_BYTES) return null;
  const channels = header.readUInt16LE(22);
  const sampleRateHz = header.readUInt32LE(24);
  if (channels === 0 || channels > 8 || sampleRateHz === 0 || sampleRateHz > 384_000) return null;
  const expected = wavHeader({ channels, sampleRateHz }, 0);
  const isOurs =
    header.subarray(0, 4).equals(expected.subarray(0, 4)) && header.subarray(8, 40).equals(expected.subarray(8, 40));
  return isOurs ? { channels, sampleRateHz } : null;
}
