import type { MessagePort } from 'node:worker_threads';
import { type PacketAudio, Timeline } from '../recording/timeline.ts';
import { Track } from '../recording/track.ts';
import { SampleRing } from '../sample-ring.ts';

/**
 * Writes a leg's audio for a consumer in another thread, as 16-bit samples, to a `SampleRing` whose memory it posts
 * once. As in a recording, gaps are silence, so that the two legs of a session stay aligned.
 */

/** Longest delay of a packet that is still included. Shorter than for a recording, because the consumer is live. */
const HOLDBACK_MS = 200;
const MS_PER_WRITE = 100;
/** Holds the holdback, audio ahead of now, and a packet. */
const TIMELINE_TICKS = 8192;
/** Samples to write, shared by the taps of a thread. */
const DUE = { 8000: new Int16Array(MS_PER_WRITE * 8), 16000: new Int16Array(MS_PER_WRITE * 16) };

interface LegTapOptions {
  port: MessagePort;
  /** Rate of the output, independent of the codecs. */
  sampleRateHz: 8000 | 16_000;
  /** Start of the stream, on the clock of the other methods. */
  nowMs: number;
  /**
   * Called once, when the consumer is eight seconds behind and the tap has ended. Dropping parts would shift all later
   * times.
   */
  onOverrun: () => void;
}

export class LegTap {
  readonly #port: MessagePort;
  readonly #onOverrun: () => void;
  readonly #samplesPerMs: number;
  readonly #timeline: Timeline;
  readonly #ring: SampleRing;
  readonly #track: Track;
  #isOver = false;

  constructor({ port, sampleRateHz, nowMs, onOverrun }: LegTapOptions) {
    this.#port = port;
    this.#onOverrun = onOverrun;
    this.#samplesPerMs = sampleRateHz / 1000;
    const samplesPerTick = sampleRateHz === 16_000 ? 2 : 1;
    this.#timeline = new Timeline(1, { samplesPerTick, capacity: samplesPerTick * TIMELINE_TICKS });
    this.#ring = new SampleRing(sampleRateHz);
    this.#track = new Track({
      timeline: this.#timeline,
      startedAtMs: nowMs,
      makeRoom: (atMs) => this.flush(atMs),
    });
    port.postMessage(this.#ring.memory);
    // The consumer is gone.
    port.on('close', () => {
      this.#isOver = true;
    });
  }

  /** Decodes a packet to its position and writes due samples. */
  addAudio(audio: PacketAudio, nowMs: number): void {
    if (this.#isOver) return;
    const end = this.#track.add(audio, nowMs);
    // Not until now: after a stall of this thread, later packets of that time are still unread.
    this.#writeDue(Math.min(end, this.#track.sampleAt(nowMs)));
  }

  /** Writes all samples that can no longer change. Call every few hundred milliseconds, also without packets. */
  flush(nowMs: number): void {
    this.#writeDue(this.#track.sampleAt(nowMs));
  }

  stop(nowMs: number): void {
    this.#writeUpTo(this.#track.sampleAt(nowMs), 1);
    this.#end();
  }

  dump(): unknown {
    return {
      seconds: this.#timeline.taken / 1000 / this.#samplesPerMs,
      sampleRateHz: this.#ring.sampleRateHz,
      samplesWaiting: this.#ring.waiting,
      samplesLate: this.#track.samplesLate,
      anchorAdjustments: this.#track.adjustments,
      isOver: this.#isOver,
    };
  }

  #writeDue(position: number): void {
    this.#writeUpTo(position - HOLDBACK_MS * this.#samplesPerMs, MS_PER_WRITE * this.#samplesPerMs);
  }

  /** Leaves fewer than `fewest` samples for later. */
  #writeUpTo(position: number, fewest: number): void {
    while (!this.#isOver && position - this.#timeline.taken >= fewest) {
      const count = Math.min(MS_PER_WRITE * this.#samplesPerMs, position - this.#timeline.taken);
      const due = DUE[this.#ring.sampleRateHz];
      const samples = count === due.length ? due : due.subarray(0, count);
      this.#timeline.take(count, samples);
      if (this.#ring.write(samples)) continue;
      this.#end();
      this.#onOverrun();
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#port.close();
  }
}
