import type { MessagePort } from 'node:worker_threads';
import type { BytesTaken } from '../../machines/utterances.ts';
import type { G711Codec } from '../dsp/g711.ts';
import { littleEndianBytes } from '../recording/recording-file.ts';
import type { RecordedPacket } from '../recording/session-recorder.ts';
import { Timeline } from '../recording/timeline.ts';
import { TrackAnchor } from '../recording/track.ts';

/**
 * Posts what one leg says to whoever listens in another thread, as `TAP_FORMAT`, a tenth of a second at a time. Time is
 * real time, as it is for a recording: what was lost or never said is silence, and the two legs of a session keep step.
 */

const SAMPLES_PER_MS = 8;
/** How long after its time a packet may still arrive and be heard: less than for a recording, since somebody waits. */
const HOLDBACK_SAMPLES = 1600;
const SAMPLES_PER_POST = 800;
/** Ten seconds. A listener so far behind is dead, or will never catch up; leaving parts out would move all later times. */
const MOST_BYTES_WAITING = 160_000;

interface LegTapOptions {
  port: MessagePort;
  /** On the clock that all else here uses; the stream begins then. */
  nowMs: number;
  /** Told once, when the listener is too far behind and the tap has ended. */
  onOverrun: () => void;
}

export class LegTap {
  readonly #port: MessagePort;
  readonly #onOverrun: () => void;
  readonly #startedAtMs: number;
  readonly #timeline = new Timeline(1);
  readonly #anchor = new TrackAnchor();
  #bytesWaiting = 0;
  #samplesLate = 0;
  #isOver = false;

  constructor({ port, nowMs, onOverrun }: LegTapOptions) {
    this.#port = port;
    this.#onOverrun = onOverrun;
    this.#startedAtMs = nowMs;
    port.on('message', ({ bytes }: BytesTaken) => {
      this.#bytesWaiting -= bytes;
    });
    // The listener has gone: nobody is owed anything.
    port.on('close', () => {
      this.#isOver = true;
    });
  }

  /** Decodes a packet to its place and posts what is due. `power` is the mean square of its samples. */
  addAudio(codec: G711Codec, datagram: Uint8Array, packet: RecordedPacket, power: number, nowMs: number): void {
    if (this.#isOver) return;
    const timeline = this.#timeline;
    const position = this.#anchor.place(packet, this.#sampleAt(nowMs), timeline.taken, power);
    // After a stall of this thread the ring may still be full of the past.
    if (position + packet.payloadBytes > timeline.end) this.flush(nowMs);
    const from = packet.payloadOffset;
    const written = timeline.put(0, position, codec, datagram, from, from + packet.payloadBytes);
    this.#samplesLate += packet.payloadBytes - written;
    this.flush(nowMs);
  }

  /** Posts everything that is too old to change. Call every few hundred milliseconds also when no packet comes. */
  flush(nowMs: number): void {
    this.#postUpTo(this.#sampleAt(nowMs) - HOLDBACK_SAMPLES, SAMPLES_PER_POST);
  }

  /** Posts the rest. Nothing follows. */
  stop(nowMs: number): void {
    this.#postUpTo(this.#sampleAt(nowMs), 1);
    this.#end();
  }

  dump(): unknown {
    return {
      seconds: this.#timeline.taken / 1000 / SAMPLES_PER_MS,
      bytesWaiting: this.#bytesWaiting,
      samplesLate: this.#samplesLate,
      anchorAdjustments: this.#anchor.adjustments,
      isOver: this.#isOver,
    };
  }

  #sampleAt(nowMs: number): number {
    return Math.round((nowMs - this.#startedAtMs) * SAMPLES_PER_MS);
  }

  /** Leaves a rest of fewer than `fewest` samples for later. */
  #postUpTo(position: number, fewest: number): void {
    while (!this.#isOver && position - this.#timeline.taken >= fewest) {
      if (this.#bytesWaiting >= MOST_BYTES_WAITING) {
        this.#end();
        this.#onOverrun();
        return;
      }
      const samples = new Int16Array(Math.min(SAMPLES_PER_POST, position - this.#timeline.taken));
      this.#timeline.take(samples.length, samples);
      // A listener takes bytes, and the memory itself.
      const bytes = new Uint8Array(littleEndianBytes(samples).buffer);
      this.#bytesWaiting += bytes.byteLength;
      this.#port.postMessage(bytes, [bytes.buffer as ArrayBuffer]);
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#port.close();
  }
}
