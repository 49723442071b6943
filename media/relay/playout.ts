import type { Codec } from '../../machines/events.ts';
import { isOpusPause, type OpusDecoder } from '../codecs/opus.ts';
import { meanPower, powerToDbov } from '../dsp/level.ts';
import { LossConcealer } from '../dsp/loss-concealer.ts';
import { NoiseFloor } from '../dsp/noise-floor.ts';
import { NoiseGenerator } from '../dsp/noise-generator.ts';
import { SteadyResampler } from '../dsp/steady-resampler.ts';
import { FRAME_SAMPLES, TELEPHONY_SAMPLE_RATE_HZ } from '../dsp/tones.ts';
import { ARRIVED, MISSING, PAUSE, type PacketAudio, Timeline } from '../recording/timeline.ts';
import { TrackAnchor } from '../recording/track.ts';
import { emptyComfortNoise, parseComfortNoise } from '../rtp/comfort-noise.ts';
import type { RtpHeader } from '../rtp/packet.ts';
import { MOST_FRAMES_MADE_UP } from './frame-pacer.ts';
import { type BufferedPacket, JitterBuffer } from './jitter-buffer.ts';
import { PacketDecoder } from './packet-decoder.ts';
import { PlayoutDelay } from './playout-delay.ts';

/**
 * Plays out one party's audio in order, 20 ms at a time, for the mixer and for other codecs. A packet may be as late as
 * its `PlayoutDelay`, which follows the jitter. Missing audio is concealed, or becomes comfort noise in a pause: one
 * that the party announced (RFC 3389), or an Opus sender's silence.
 */

const TICKS_PER_MS = TELEPHONY_SAMPLE_RATE_HZ / 1000;
/** Older frames are dropped if the pacer does not make up for a stall of the thread, so that the delay does not persist. */
const MOST_FRAMES_WAITING = 3;
/** The pacer takes the others at once. */
const MOST_FRAMES_AFTER_STALL = MOST_FRAMES_WAITING + MOST_FRAMES_MADE_UP;
/** Weight of the past in the level: it halves in 5 frames, so that pauses between words do not matter. */
const LEVEL_DECAY = 0.87;
/** One second; later audio waits as packets. */
const TIMELINE_TICKS = 8192;
/** Mean square below which a repeated or dropped frame is inaudible. */
const QUIET_POWER = 100 * 100;
/** Frames that a delay change waits for a quiet moment. Too small a delay loses packets, so growing waits less. */
const LONGEST_WAIT_TO_GROW = 50;
const LONGEST_WAIT_TO_SHRINK = 500;
const MOST_PAYLOAD_BYTES = 1440;
/** 60 ms, after which a concealed loss has faded. An Opus party that sends nothing for longer pauses. */
const UNANNOUNCED_PAUSE_TICKS = 480;

interface PlayoutOptions {
  nowMs: number;
  /** Plays out at 16 kHz, for a wideband codec. Default false: 8 kHz. */
  isWide?: boolean;
}

export class Playout {
  /** Whether `frame` is 16 kHz, else 8 kHz. */
  readonly isWide: boolean;
  readonly frame: Int16Array;
  /** Mean square of the last frames, in 16-bit steps, by which the mixer picks speakers. */
  level = 0;
  /** End position and sequence number of the last decoded packet; -1 before. */
  #releasedTo = -1;
  #releasedSequence = -1;
  readonly #buffer = new JitterBuffer();
  readonly #decoder = new PacketDecoder(MOST_PAYLOAD_BYTES);
  readonly #timeline: Timeline;
  readonly #perTick: 1 | 2;
  readonly #anchor = new TrackAnchor();
  readonly #startedAtMs: number;
  readonly #arrivals: Uint8Array;
  readonly #concealer: LossConcealer;
  /** `frame` at the other rate, converted on request. */
  #converted: Int16Array | null = null;
  #isConverted = false;
  #converter: SteadyResampler | null = null;
  readonly #noise = new NoiseGenerator();
  readonly #announced = emptyComfortNoise();
  readonly #neededDelay = new PlayoutDelay();
  /** Current delay, in whole frames. */
  #delay = this.#neededDelay.ticks;
  /** Frames since a different delay is needed. */
  #framesUnsettled = 0;
  #lastPower = 0;
  /** Whether the last sample was missing, and whether that is a pause. */
  #isMissing = false;
  #isPausing = false;
  /** Since the last received sample. */
  #ticksMissing = 0;
  /** Only for Opus. */
  readonly #background = new NoiseFloor();
  #codec: Codec | null = null;
  /** Successive calls of `takeFrame` with more than `MOST_FRAMES_WAITING`. */
  #framesBehind = 0;
  #ticksLate = 0;
  #framesDropped = 0;

  /** Opus decoder; without one, Opus is silence. */
  set opus(opus: OpusDecoder | null) {
    this.#decoder.opus = opus;
  }

  constructor({ nowMs, isWide = false }: PlayoutOptions) {
    this.#startedAtMs = nowMs;
    this.isWide = isWide;
    this.#perTick = isWide ? 2 : 1;
    const samplesPerTick = this.#perTick;
    this.frame = new Int16Array(samplesPerTick * FRAME_SAMPLES);
    this.#arrivals = new Uint8Array(this.frame.length);
    this.#timeline = new Timeline(1, {
      samplesPerTick,
      capacity: samplesPerTick * TIMELINE_TICKS,
      notesArrivals: true,
    });
    this.#concealer = new LossConcealer(samplesPerTick);
  }

  /** The last frame, at 16 or 8 kHz. */
  frameAt(isWide: boolean): Int16Array {
    if (isWide === this.isWide) return this.frame;
    if (this.#isConverted) return this.#converted!;
    this.#isConverted = true;
    this.#converted ??= new Int16Array(isWide ? 2 * FRAME_SAMPLES : FRAME_SAMPLES);
    this.#converter ??= isWide ? new SteadyResampler(8000, 16_000) : new SteadyResampler(16_000, 8000);
    this.#converter.process(this.frame, this.frame.length, this.#converted);
    return this.#converted;
  }

  /** Queues a packet. Allocates nothing once its memory has grown. */
  addAudio(audio: PacketAudio, nowMs: number): void {
    const now = this.#tickAt(nowMs);
    const taken = this.#taken;
    // Opus is not decoded for its power, so its anchor may move at any time.
    const power = audio.codec === 'OPUS' ? 0 : audio.power;
    const position = this.#anchor.place(audio, now, taken, power);
    this.#neededDelay.note(now - position);
    if (position + audio.ticks <= taken) this.#ticksLate += audio.ticks;
    else this.#buffer.put(audio, position);
  }

  /** Takes a comfort noise packet, which starts a pause until the next audio. Allocates nothing. */
  addComfortNoise(datagram: Uint8Array, packet: RtpHeader, nowMs: number): void {
    if (!parseComfortNoise(datagram, packet.payloadOffset, packet.payloadBytes, this.#announced)) return;
    this.#noise.describe(this.#announced);
    const position = this.#anchor.place(packet, this.#tickAt(nowMs), this.#taken, 0);
    if (!this.#timeline.markPause(this.#perTick * position) && this.#isMissing) this.#isPausing = true;
  }

  /** Moves the next 20 ms into `frame`. Call at the frame rate. */
  takeFrame(nowMs: number): void {
    const now = this.#tickAt(nowMs);
    this.#isConverted = false;
    this.#dropOld(now);
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

  #dropOld(now: number): void {
    const waiting = this.#dueAt(now) / FRAME_SAMPLES;
    this.#framesBehind = waiting > MOST_FRAMES_WAITING ? this.#framesBehind + 1 : 0;
    if (this.#framesBehind <= MOST_FRAMES_MADE_UP && waiting <= MOST_FRAMES_AFTER_STALL) return;
    while (this.#dueAt(now) > MOST_FRAMES_WAITING * FRAME_SAMPLES) {
      this.#take();
      this.#framesDropped += 1;
    }
  }

  #dueAt(now: number): number {
    return now - this.#delay - this.#taken;
  }

  /** Whether the delay must grow now. The best moment is while a packet is late anyway, or the party is quiet. */
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
    this.#fill(0, this.frame.length);
  }

  #mustHurry(): boolean {
    if (this.#neededDelay.ticks >= this.#delay) return false;
    return meanPower(this.frame) < QUIET_POWER || this.#framesUnsettled > LONGEST_WAIT_TO_SHRINK;
  }

  /** Drops the current frame and takes the next one, blended into the audio before. */
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
    this.#timeline.take(frame.length, frame, arrivals);
    for (let from = 0; from < frame.length; ) {
      let to = from + 1;
      while (to < frame.length && arrivals[to] === arrivals[from]) to += 1;
      if (arrivals[from] === PAUSE) this.#isPausing = true;
      if (arrivals[from] === ARRIVED) this.#hear(from, to);
      else this.#fill(from, to);
      from = to;
    }
  }

  /** Decodes the packets that begin in the next frame. */
  #release(): void {
    const timeline = this.#timeline;
    const perTick = this.#perTick;
    for (let packet = this.#buffer.first; packet !== null; packet = this.#buffer.first) {
      const lostTicks = this.#recoverable(packet);
      if (packet.position - lostTicks >= this.#taken + FRAME_SAMPLES) return;
      this.#buffer.shift();
      if (lostTicks > 0) {
        const samples = this.#decoder.recovered(
          packet.datagram.subarray(0, packet.payloadBytes),
          lostTicks,
          this.isWide,
        );
        timeline.putSamples(0, perTick * (packet.position - lostTicks), samples, perTick * lostTicks);
      }
      this.#releasedTo = packet.position + packet.ticks;
      this.#releasedSequence = packet.sequence;
      this.#decoder.decode(packet.codec, packet.datagram, packet);
      this.#ticksLate += packet.ticks - timeline.put(0, perTick * packet.position, this.#decoder) / perTick;
      this.#codec = packet.codec;
      if (packet.codec !== 'OPUS') continue;
      if (isOpusPause(packet.payloadBytes)) this.#announcePause();
      else this.#background.rises(this.#decoder.power);
    }
  }

  /** After the last decoded packet, noise of its level follows. */
  #announcePause(): void {
    this.#describeNoise(this.#decoder.power);
    this.#timeline.markPause(this.#perTick * this.#releasedTo);
  }

  #describeNoise(power: number): void {
    this.#announced.levelDbov = powerToDbov(power);
    this.#announced.order = 0;
    this.#noise.describe(this.#announced);
  }

  /** Many Opus senders omit the packet that announces a pause, or it was lost. */
  #noticePause(): void {
    if (this.#codec !== 'OPUS' || this.#ticksMissing < UNANNOUNCED_PAUSE_TICKS || this.#buffer.first !== null) return;
    this.#isPausing = true;
    this.#describeNoise(this.#background.power);
  }

  /** Ticks of a loss before a packet that its redundancy covers: the last frame. */
  #recoverable(packet: BufferedPacket): number {
    if (packet.codec !== 'OPUS' || this.#releasedTo < 0) return 0;
    const isLoss = ((packet.sequence - this.#releasedSequence) & 0xffff) > 1;
    const missing = packet.position - Math.max(this.#releasedTo, this.#taken);
    return isLoss && missing >= packet.ticks ? packet.ticks : 0;
  }

  #hear(from: number, to: number): void {
    if (this.#isPausing) this.#noise.reset();
    this.#isPausing = false;
    this.#isMissing = false;
    this.#ticksMissing = 0;
    this.#concealer.addReceived(this.frame, from, to);
  }

  #fill(from: number, to: number): void {
    this.#isMissing = true;
    if (!this.#isPausing) this.#noticePause();
    this.#ticksMissing += (to - from) / this.#perTick;
    if (!this.#isPausing) {
      this.#concealer.conceal(this.frame, from, to);
      return;
    }
    this.#noise.generate(this.frame, from, to);
    this.#concealer.addReceived(this.frame, from, to);
  }

  /** In ticks. */
  get #taken(): number {
    return this.#timeline.taken / this.#perTick;
  }

  #tickAt(nowMs: number): number {
    return Math.round((nowMs - this.#startedAtMs) * TICKS_PER_MS);
  }
}
