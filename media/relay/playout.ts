import type { OpusDecoder } from '../codecs/opus.ts';
import { meanPower } from '../dsp/level.ts';
import { LossConcealer } from '../dsp/loss-concealer.ts';
import { NoiseGenerator } from '../dsp/noise-generator.ts';
import { FRAME_SAMPLES, TELEPHONY_SAMPLE_RATE_HZ } from '../dsp/tones.ts';
import { ARRIVED, MISSING, PAUSE, type PacketAudio, Timeline } from '../recording/timeline.ts';
import { TrackAnchor } from '../recording/track.ts';
import { emptyComfortNoise, parseComfortNoise } from '../rtp/comfort-noise.ts';
import type { RtpHeader } from '../rtp/packet.ts';
import { type BufferedPacket, JitterBuffer } from './jitter-buffer.ts';
import { PacketDecoder } from './packet-decoder.ts';
import { PlayoutDelay } from './playout-delay.ts';

/**
 * What one party says, in order and 20 ms at a time, for those who cannot have its packets as they came: the mixer, and
 * parties with another codec. A packet may arrive as late as its `PlayoutDelay`, which follows the jitter. What is missing by
 * then is concealed, or comfort noise where the party has announced that it pauses (RFC 3389).
 */

const TICKS_PER_MS = TELEPHONY_SAMPLE_RATE_HZ / 1000;
/** Frames that wait after a stall of the thread; older ones are dropped, so that the delay does not stay. */
const MOST_FRAMES_WAITING = 3;
/** Weight of the newest frame in the level: the level falls by half in 5 frames, so that pauses between words do not matter. */
const LEVEL_DECAY = 0.87;
/** A second: what is not due waits as packets. */
const TIMELINE_SAMPLES = 8192;
/** Mean square below which nobody hears that a frame is repeated or left out. */
const QUIET_POWER = 100 * 100;
/** Frames for which another delay waits for a quiet moment: longer is worse than nothing, shorter than losses. */
const LONGEST_WAIT_TO_GROW = 50;
const LONGEST_WAIT_TO_SHRINK = 500;
const MOST_PAYLOAD_BYTES = 1440;

export class Playout {
  /** The frame that `takeFrame` took last. */
  readonly frame = new Int16Array(FRAME_SAMPLES);
  /** Mean square of the last frames in 16-bit steps, which decides who is heard when many speak. */
  level = 0;
  /** Of what was released last: the position after it, and its sequence number. -1 before. */
  #releasedTo = -1;
  #releasedSequence = -1;
  readonly #buffer = new JitterBuffer();
  readonly #decoder = new PacketDecoder(MOST_PAYLOAD_BYTES);
  readonly #timeline = new Timeline(1, { capacity: TIMELINE_SAMPLES, notesArrivals: true });
  readonly #anchor = new TrackAnchor();
  readonly #startedAtMs: number;
  readonly #arrivals = new Uint8Array(FRAME_SAMPLES);
  readonly #concealer = new LossConcealer();
  readonly #noise = new NoiseGenerator();
  readonly #announced = emptyComfortNoise();
  readonly #neededDelay = new PlayoutDelay();
  /** What applies now: whole frames. */
  #delay = this.#neededDelay.ticks;
  /** Frames since another delay is needed. */
  #framesUnsettled = 0;
  #lastPower = 0;
  /** The last sample taken was missing; and what is missing is a pause that was announced. */
  #isMissing = false;
  #isPausing = false;
  #ticksLate = 0;
  #framesDropped = 0;

  /** Decodes Opus; without, Opus is silence. */
  set opus(opus: OpusDecoder | null) {
    this.#decoder.opus = opus;
  }

  constructor(nowMs: number) {
    this.#startedAtMs = nowMs;
  }

  /** Keeps a packet for its time. Allocates nothing once its memory has grown. */
  addAudio(audio: PacketAudio, nowMs: number): void {
    const now = this.#tickAt(nowMs);
    const { taken } = this.#timeline;
    // Opus is not decoded for that: its anchor moves at any time.
    const power = audio.codec === 'OPUS' ? 0 : audio.power;
    const position = this.#anchor.place(audio, now, taken, power);
    this.#neededDelay.note(now - position);
    if (position + audio.ticks <= taken) this.#ticksLate += audio.ticks;
    else this.#buffer.put(audio, position);
  }

  /** Takes a comfort noise packet: from its time on the party pauses, until its next audio. Allocates nothing. */
  addComfortNoise(datagram: Uint8Array, packet: RtpHeader, nowMs: number): void {
    if (!parseComfortNoise(datagram, packet.payloadOffset, packet.payloadBytes, this.#announced)) return;
    this.#noise.describe(this.#announced);
    const position = this.#anchor.place(packet, this.#tickAt(nowMs), this.#timeline.taken, 0);
    if (!this.#timeline.markPause(position) && this.#isMissing) this.#isPausing = true;
  }

  /** Moves the next 20 ms into `frame`. Call at the pace of the frames. */
  takeFrame(nowMs: number): void {
    const now = this.#tickAt(nowMs);
    while (this.#dueAt(now) > MOST_FRAMES_WAITING * FRAME_SAMPLES) {
      this.#take();
      this.#framesDropped += 1;
    }
    if (this.#dueAt(now) < FRAME_SAMPLES) this.frame.fill(0);
    else if (this.#mustWait()) this.#wait();
    else {
      this.#take();
      if (this.#mustHurry()) this.#hurry();
    }
    this.#lastPower = meanPower(this.frame);
    this.level = Math.max(this.#lastPower, this.level * LEVEL_DECAY);
  }

  dump(): unknown {
    return {
      level: Math.round(this.level),
      delayMs: this.#delay / TICKS_PER_MS,
      packetsWaiting: this.#buffer.waiting,
      duplicates: this.#buffer.duplicates,
      samplesLate: this.#ticksLate,
      samplesConcealed: this.#concealer.concealed,
      framesDropped: this.#framesDropped,
      isPausing: this.#isPausing,
    };
  }

  /** Ticks that may be taken. */
  #dueAt(now: number): number {
    return now - this.#delay - this.#timeline.taken;
  }

  /** Whether the delay has to grow now: best while a packet is late anyway, or the party is quiet. */
  #mustWait(): boolean {
    const missing = this.#neededDelay.ticks - this.#delay;
    this.#framesUnsettled = missing === 0 ? 0 : this.#framesUnsettled + 1;
    if (missing <= 0) return false;
    this.#release();
    const isGood = this.#lastPower < QUIET_POWER || this.#timeline.firstArrival === MISSING;
    return isGood || this.#framesUnsettled > LONGEST_WAIT_TO_GROW;
  }

  #wait(): void {
    this.#delay += FRAME_SAMPLES;
    this.#framesUnsettled = 0;
    this.#fill(0, FRAME_SAMPLES);
  }

  #mustHurry(): boolean {
    if (this.#neededDelay.ticks >= this.#delay) return false;
    return meanPower(this.frame) < QUIET_POWER || this.#framesUnsettled > LONGEST_WAIT_TO_SHRINK;
  }

  /** Leaves out the frame that was taken and takes the next one, which blends into what was heard before. */
  #hurry(): void {
    this.#delay -= FRAME_SAMPLES;
    this.#framesUnsettled = 0;
    this.#concealer.bridge();
    this.#take();
  }

  #take(): void {
    this.#release();
    const { frame } = this;
    const arrivals = this.#arrivals;
    this.#timeline.take(FRAME_SAMPLES, frame, arrivals);
    for (let from = 0; from < FRAME_SAMPLES; ) {
      let to = from + 1;
      while (to < FRAME_SAMPLES && arrivals[to] === arrivals[from]) to += 1;
      if (arrivals[from] === PAUSE) this.#isPausing = true;
      if (arrivals[from] === ARRIVED) this.#hear(from, to);
      else this.#fill(from, to);
      from = to;
    }
  }

  /** Decodes what begins in the next frame. */
  #release(): void {
    const timeline = this.#timeline;
    for (let packet = this.#buffer.first; packet !== null; packet = this.#buffer.first) {
      const lostTicks = this.#recoverable(packet);
      if (packet.position - lostTicks >= timeline.taken + FRAME_SAMPLES) return;
      this.#buffer.shift();
      if (lostTicks > 0) {
        const samples = this.#decoder.recovered(packet.datagram.subarray(0, packet.payloadBytes), lostTicks);
        timeline.putSamples(0, packet.position - lostTicks, samples, lostTicks);
      }
      this.#releasedTo = packet.position + packet.ticks;
      this.#releasedSequence = packet.sequence;
      this.#decoder.decode(packet.codec, packet.datagram, packet);
      this.#ticksLate += packet.ticks - timeline.put(0, packet.position, this.#decoder);
    }
  }

  /** How much of a loss just before a packet the packet may make good: the last frame. */
  #recoverable(packet: BufferedPacket): number {
    if (packet.codec !== 'OPUS' || this.#releasedTo < 0) return 0;
    const isLoss = ((packet.sequence - this.#releasedSequence) & 0xffff) > 1;
    const missing = packet.position - Math.max(this.#releasedTo, this.#timeline.taken);
    return isLoss && missing >= packet.ticks ? packet.ticks : 0;
  }

  #hear(from: number, to: number): void {
    if (this.#isPausing) this.#noise.reset();
    this.#isPausing = false;
    this.#isMissing = false;
    this.#concealer.addReceived(this.frame, from, to);
  }

  #fill(from: number, to: number): void {
    this.#isMissing = true;
    if (!this.#isPausing) {
      this.#concealer.conceal(this.frame, from, to);
      return;
    }
    this.#noise.generate(this.frame, from, to);
    this.#concealer.addReceived(this.frame, from, to);
  }

  #tickAt(nowMs: number): number {
    return Math.round((nowMs - this.#startedAtMs) * TICKS_PER_MS);
  }
}
