import { lstat, rm } from 'node:fs/promises';
import type { FileSeal } from '../../runtime/sealed-file/format.ts';
import type { RecordingSummary } from '../media-plane.ts';
import { WAV_HEADER_BYTES, WavFileWriter } from '../wav.ts';
import { RecordingFile } from './recording-file.ts';
import { SealedWavWriter } from './sealed-wav.ts';
import { type Channel, type PacketAudio, Timeline } from './timeline.ts';
import { Track } from './track.ts';

/**
 * Records both parties of a session as one stereo file, as long as the recording ran. As evidence, it keeps losses
 * silent, because concealment would add sound that the party never made; comfort noise pauses stay silent too. Further
 * parties are mixed into a channel.
 */

/** Longest delay of a packet that is still recorded. */
const HOLDBACK_MS = 1500;
/** One write. Smaller writes cost more than the rest of a recording. */
const MS_PER_WRITE = 500;

/**
 * Arrays of written chunks, by sample rate, which all recordings of the thread use again. Their garbage collection took
 * a tenth of the CPU time of a thousand recorded calls.
 */
const spareChunks: Record<8000 | 16_000, Int16Array[]> = { 8000: [], 16000: [] };
const MOST_SPARE_CHUNKS = 100;

interface SessionRecorderOptions {
  filePath: string;
  /** Rate of the file, independent of the codecs. Default 8000. */
  sampleRateHz?: 8000 | 16_000;
  /** Encrypts the file. Default null: not encrypted. */
  seal?: FileSeal | null;
  /** On the clock of `addAudio`, `flush` and `stop`. */
  nowMs: number;
  onFailed: (detail: string) => void;
}

/** Audio of a further party, until it is mixed into its channel. */
interface Voice {
  timeline: Timeline;
  track: Track;
  /** End of its last packet, in samples. */
  end: number;
  hasEnded: boolean;
}

const CHANNELS = [0, 1] as const satisfies Channel[];

export class SessionRecorder {
  readonly filePath: string;
  isPaused = false;
  readonly #file: RecordingFile;
  readonly #samplesPerMs: number;
  readonly #spareChunks: Int16Array[];
  readonly #timeline: Timeline;
  readonly #tracks: readonly [Track, Track];
  /** By channel and party: a party changes the channel when it replaces a leg. */
  readonly #voices: Record<Channel, Map<string, Voice>> = { 0: new Map(), 1: new Map() };
  readonly #startedAtMs: number;

  constructor(options: SessionRecorderOptions) {
    this.filePath = options.filePath;
    this.#startedAtMs = options.nowMs;
    const { sampleRateHz = 8000 } = options;
    this.#samplesPerMs = sampleRateHz / 1000;
    this.#spareChunks = spareChunks[sampleRateHz];
    this.#timeline = new Timeline(2, { samplesPerTick: sampleRateHz === 16_000 ? 2 : 1 });
    this.#tracks = [this.#trackOf(this.#timeline, 0), this.#trackOf(this.#timeline, 1)];
    const { filePath, seal = null, onFailed } = options;
    const format = { channels: 2, sampleRateHz };
    const openFile = async () => {
      try {
        return await (seal === null
          ? WavFileWriter.open(filePath, format)
          : SealedWavWriter.open(filePath, format, seal));
      } catch (error) {
        // The failed recording has no row that would lead to its empty file.
        await removeFile(filePath).catch(() => {});
        throw error;
      }
    };
    this.#file = new RecordingFile({ openFile, onFailed, onWritten: (chunk) => this.#reuse(chunk) });
  }

  /** Opens the file. Audio is kept meanwhile. @throws the file system's error, after `onFailed`. */
  open(): Promise<void> {
    return this.#file.open();
  }

  /** Decodes a packet to its position. Allocates nothing. */
  addAudio(channel: Channel, audio: PacketAudio, nowMs: number): void {
    if (!this.isPaused) this.#tracks[channel].add(audio, nowMs);
  }

  /**
   * As `addAudio`, for a further party, mixed into the channel. Allocates nothing after the first packet on that
   * channel.
   */
  addVoice(party: string, channel: Channel, audio: PacketAudio, nowMs: number): void {
    if (this.isPaused) return;
    let voice = this.#voices[channel].get(party);
    if (voice === undefined) {
      const timeline = new Timeline(1, { samplesPerTick: this.#timeline.samplesPerTick, taken: this.#timeline.taken });
      voice = { timeline, track: this.#trackOf(timeline, 0), end: 0, hasEnded: false };
      this.#voices[channel].set(party, voice);
    }
    voice.end = Math.max(voice.end, voice.track.add(audio, nowMs));
  }

  /** Marks the end of a party's audio. Idempotent. */
  endVoice(party: string): void {
    for (const channel of CHANNELS) {
      const voice = this.#voices[channel].get(party);
      if (voice !== undefined) voice.hasEnded = true;
    }
  }

  /** Writes audio that can no longer change, once there is enough for a write. Call every few hundred milliseconds. */
  flush(nowMs: number): void {
    this.#writeUpTo(this.#tracks[0].sampleAt(nowMs - HOLDBACK_MS), this.#samplesPerWrite);
  }

  /** Ends the recording at `nowMs`. Null if the file failed. */
  async stop(nowMs: number): Promise<RecordingSummary | null> {
    this.#writeUpTo(this.#tracks[0].sampleAt(nowMs), 1);
    const dataBytes = await this.#file.finish();
    if (dataBytes === null) return null;
    return {
      filePath: this.filePath,
      bytes: WAV_HEADER_BYTES + dataBytes,
      durationMs: dataBytes / 4 / this.#samplesPerMs,
    };
  }

  #trackOf(timeline: Timeline, channel: Channel): Track {
    const makeRoom = (nowMs: number): void => this.flush(nowMs);
    return new Track({ timeline, channel, startedAtMs: this.#startedAtMs, makeRoom });
  }

  /** Leaves fewer than `fewest` samples for later. */
  #writeUpTo(position: number, fewest: number): void {
    while (position - this.#timeline.taken >= fewest) {
      const samples = Math.min(this.#samplesPerWrite, position - this.#timeline.taken);
      const chunk = this.#chunkOf(samples);
      this.#timeline.take(samples, chunk);
      for (const channel of CHANNELS) this.#addVoices(chunk, samples, channel);
      this.#file.write(chunk);
    }
  }

  get #samplesPerWrite(): number {
    return MS_PER_WRITE * this.#samplesPerMs;
  }

  /** An array with any content. */
  #chunkOf(samples: number): Int16Array {
    const spare = samples === this.#samplesPerWrite ? this.#spareChunks.pop() : undefined;
    return spare ?? new Int16Array(2 * samples);
  }

  #reuse(chunk: Int16Array): void {
    const isWhole = chunk.length === 2 * this.#samplesPerWrite;
    if (isWhole && this.#spareChunks.length < MOST_SPARE_CHUNKS) this.#spareChunks.push(chunk);
  }

  #addVoices(chunk: Int16Array, samples: number, channel: Channel): void {
    for (const [party, { timeline, end, hasEnded }] of this.#voices[channel]) {
      const said = new Int16Array(samples);
      timeline.take(samples, said);
      for (let i = 0; i < samples; i++) {
        const sum = chunk[2 * i + channel]! + said[i]!;
        chunk[2 * i + channel] = Math.max(-32_768, Math.min(32_767, sum));
      }
      if (hasEnded && timeline.taken >= end) this.#voices[channel].delete(party);
    }
  }

  dump(): unknown {
    return {
      seconds: this.#timeline.taken / 1000 / this.#samplesPerMs,
      sampleRateHz: 1000 * this.#samplesPerMs,
      samplesLate: this.#tracks[0].samplesLate + this.#tracks[1].samplesLate,
      anchorAdjustments: this.#tracks.map((track) => track.adjustments),
    };
  }
}

/** Removes a regular file. Devices and links stay: root could remove `/dev/full`. */
async function removeFile(filePath: string): Promise<void> {
  if ((await lstat(filePath)).isFile()) await rm(filePath);
}
