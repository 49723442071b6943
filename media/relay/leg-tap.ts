import type { MessagePort } from 'node:worker_threads';
import { type PacketAudio, Timeline } from '../recording/timeline.ts';
import { Track } from '../recording/track.ts';
import { SampleRing } from '../sample-ring.ts';

/**
 * Hands what one leg says to whoever listens in another thread, as samples of 16 bits, through a `SampleRing` whose memory it
 * posts once. Time is real time, as it is for a recording: what was lost or never said is silence, from which a recogniser
 * makes no words, and the two legs of a session keep step.
 */

/** How long after its time a packet may still arrive and be heard: less than for a recording, since somebody waits. */
const HOLDBACK_MS = 200;
const MS_PER_WRITE = 100;
/** More than the holdback, what may lie ahead of now, and a packet. */
const TIMELINE_TICKS = 8192;
/** What is about to be written; the taps of a thread take turns. */
const DUE = { 8000: new Int16Array(MS_PER_WRITE * 8), 16000: new Int16Array(MS_PER_WRITE * 16) };

interface LegTapOptions {
  port: MessagePort;
  /** Of what is written, whatever the codecs. */
  sampleRateHz: 8000 | 16_000;
  /** On the clock that all else here uses; the stream begins then. */
  nowMs: number;
  /** Called once, when the listener is eight seconds behind and the tap has ended: leaving parts out would move all later times. */
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
    // The listener has gone: nobody is owed anything.
    port.on('close', () => {
      this.#isOver = true;
    });
  }

  /** Decodes a packet to its place and writes what is due. */
  addAudio(audio: PacketAudio, nowMs: number): void {
    if (this.#isOver) return;
    this.#track.add(audio, nowMs);
    this.flush(nowMs);
  }

  /** Writes everything that is too old to change. Call every few hundred milliseconds also when no packet comes. */
  flush(nowMs: number): void {
    this.#writeUpTo(this.#track.sampleAt(nowMs - HOLDBACK_MS), MS_PER_WRITE * this.#samplesPerMs);
  }

  /** Writes the rest. Nothing follows. */
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

  /** Leaves a rest of fewer than `fewest` samples for later. */
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
