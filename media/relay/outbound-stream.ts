import { FRAME_MS, FRAME_SAMPLES } from '../dsp/tones.ts';
import type { RtpHeader } from '../rtp/packet.ts';
import { sequenceDelta, timestampDelta } from '../rtp/receiver-statistics.ts';
import { MOST_FRAMES_MADE_UP } from './frame-pacer.ts';

/**
 * Our one RTP stream to a leg, whatever its source: ringing tone, early media, or the other party before and after a
 * transfer. The SSRC stays, sequence numbers have no added gaps, and timestamps follow time, so the peer's jitter
 * buffer never restarts. RFC 3550 §7.1 describes a translator; this one also hides source changes. The first packet
 * after a switch carries the marker.
 */

/** A source with a larger sequence or timestamp jump has restarted. */
const MAX_DROPOUT = 3000;
const MAX_MISORDER = 100;
export const MAX_TIMESTAMP_LEAP_MS = 2000;
/** Longer than any delay, and shorter than 65,536 packets, after which a late sequence number and a new one look alike. */
const MAX_EVENT_LATENESS_MS = 10_000;

const TICKS_PER_MS = 8;
const NO_SOURCE = -1;
const GENERATOR = -2;
/** Generated frames after a longer gap start a new run; after a shorter one the pacer makes up for a late thread. */
const LONGEST_STALL_MS = (1 + MOST_FRAMES_MADE_UP) * FRAME_MS;

interface OutboundStreamSeed {
  /** 32 bits. */
  ssrc: number;
  /** 16 bits. */
  sequence: number;
  /** 32 bits. */
  timestamp: number;
}

/** Packets that followed each other. */
export interface RelayedPackets {
  packets: number;
  /** Bytes of payload. */
  octets: number;
  /** Ticks of 125 us in the last packet. */
  lastTicks: number;
  /** The last packet as received. */
  sequence: number;
  timestamp: number;
  nowMs: number;
}

/** The last event that was relayed. Other audio may be sent between its packets. */
class RelayedEvent {
  #source = NO_SOURCE;
  #sequence = 0;
  #sourceTimestamp = 0;
  #timestamp = 0;
  #atMs = 0;

  forget(): void {
    this.#source = NO_SOURCE;
  }

  /** Whether a packet is a late one of an event before this one. It would count as a further press. */
  isAfter(header: RtpHeader, nowMs: number): boolean {
    if (header.ssrc !== this.#source || header.timestamp === this.#sourceTimestamp) return false;
    if (nowMs - this.#atMs > MAX_EVENT_LATENESS_MS) return false;
    const ahead = sequenceDelta(header.sequence, this.#sequence);
    return ahead < 0 && ahead >= -MAX_MISORDER;
  }

  /**
   * Takes a packet. Returns the timestamp of the event's first packet, which all of them have (RFC 4733 §2.5.1.2); null
   * if this is the first, which has `timestamp`.
   */
  take(header: RtpHeader, timestamp: number, nowMs: number): number | null {
    const isSameEvent = header.ssrc === this.#source && header.timestamp === this.#sourceTimestamp;
    if (!isSameEvent || sequenceDelta(header.sequence, this.#sequence) > 0) this.#sequence = header.sequence;
    this.#atMs = nowMs;
    if (isSameEvent) return this.#timestamp;
    this.#source = header.ssrc;
    this.#sourceTimestamp = header.timestamp;
    this.#timestamp = timestamp;
    return null;
  }
}

export class OutboundStream {
  /** May change before the first packet. */
  ssrc: number;
  packetsSent = 0;
  octetsSent = 0;
  /** Header fields of the packet that was just admitted. */
  sequence: number;
  timestamp: number;
  marker = false;

  #source = NO_SOURCE;
  /** Timestamp units. */
  #clockPerMs = 8;
  #sequenceOffset = 0;
  #timestampOffset = 0;
  /** Highest sequence number of the source. Numbers before #floorSequence were dropped or sent by an earlier source. */
  #sourceSequence = 0;
  #floorSequence = 0;
  #sourceTimestamp = 0;
  #sourceAtMs = 0;
  /** The first packet of this source was an event. Its timestamp lies in the past and does not place other audio. */
  #beganWithEvent = false;
  /** It did so between generated frames, which go on as if it were not there. */
  #isBetweenFrames = false;
  /** Highest sequence number and newest timestamp sent, and the time. */
  #sentSequence: number;
  #sentTimestamp: number;
  #sentAtMs = 0;
  /** The same before the last generated frame. */
  #earlierTimestamp = 0;
  #earlierAtMs = 0;
  #hasSent = false;
  /** The last packet was an event or comfort noise, which took longer than a frame, or a pause was not sent. */
  #isAfterPause = false;
  /** Audio in the packet that was sent last. */
  #sentMs = FRAME_MS;
  readonly #event = new RelayedEvent();

  constructor(seed: OutboundStreamSeed) {
    this.ssrc = seed.ssrc;
    this.sequence = seed.sequence;
    this.timestamp = seed.timestamp;
    this.#sentSequence = (seed.sequence - 1) & 0xffff;
    this.#sentTimestamp = seed.timestamp;
  }

  /** Sets the clock rate of the peer's codec. Timestamps follow time across the change. */
  setClock(clockHz: number): void {
    if (clockHz === 1000 * this.#clockPerMs) return;
    this.#clockPerMs = clockHz / 1000;
    this.#event.forget();
    this.switchSource();
  }

  /** The next packet has another source, or the same one after we sent something else. */
  switchSource(): void {
    this.#source = NO_SOURCE;
    this.#isBetweenFrames = false;
  }

  /**
   * Admits a packet of the source and sets `sequence`, `timestamp` and `marker` for it. False if it is older than a
   * switch, so its number is taken.
   * @param sourceClockHz of its timestamps; only events of a source may have another clock than ours
   * @param ticks of 125 us in the packet
   */
  admit(
    header: RtpHeader,
    nowMs: number,
    isEvent: boolean,
    sourceClockHz = 1000 * this.#clockPerMs,
    ticks = header.payloadBytes,
  ): boolean {
    if (isEvent && this.#event.isAfter(header, nowMs)) return false;
    if (this.#isNewSource(header, nowMs, isEvent)) {
      this.#isBetweenFrames = isEvent && (this.#source === GENERATOR || this.#isBetweenFrames);
      this.#rebase(header.ssrc, header.sequence, header.timestamp, nowMs);
      this.#beganWithEvent = isEvent;
    } else this.marker = header.marker;
    const ahead = sequenceDelta(header.sequence, this.#sourceSequence);
    if (ahead < 0 && sequenceDelta(header.sequence, this.#floorSequence) < 0) return false;
    this.sequence = (header.sequence + this.#sequenceOffset) & 0xffff;
    this.timestamp = (header.timestamp + this.#timestampOffset) >>> 0;
    if (isEvent) {
      if (this.#beganWithEvent) this.#convertTimestampOf(header, sourceClockHz);
      const started = this.#event.take(header, this.timestamp, nowMs);
      if (started !== null) this.timestamp = started;
      if (started !== null) this.marker = false;
    }
    if (ahead >= 0) this.#advance(header, nowMs, isEvent, ticks);
    this.#count(header.payloadBytes, nowMs);
    return true;
  }

  /** Measures an event from the one with which this source began. */
  #convertTimestampOf(header: RtpHeader, sourceClockHz: number): void {
    const later = timestampDelta(header.timestamp, this.#sourceTimestamp);
    const converted = Math.round((later * 1000 * this.#clockPerMs) / sourceClockHz);
    this.timestamp = (this.#sourceTimestamp + this.#timestampOffset + converted) >>> 0;
  }

  /** Whether a packet is the newest of the source, with an 8 kHz clock, so that the next ones may be `addInOrder`. */
  isAt({ ssrc, sequence, timestamp }: RtpHeader): boolean {
    const isNewest = ssrc === this.#source && sequence === this.#sourceSequence && timestamp === this.#sourceTimestamp;
    return isNewest && this.#clockPerMs === 8;
  }

  /** Counts audio packets of the source that followed each other and were sent. `sequence` and `timestamp` are the last. */
  addInOrder({ sequence, timestamp, packets, octets, lastTicks, nowMs }: RelayedPackets): void {
    this.marker = false;
    this.sequence = (sequence + this.#sequenceOffset) & 0xffff;
    this.timestamp = (timestamp + this.#timestampOffset) >>> 0;
    this.#sourceSequence = sequence;
    this.#raiseFloor();
    this.#sourceTimestamp = timestamp;
    this.#sourceAtMs = nowMs;
    this.#sentSequence = this.sequence;
    this.#sentTimestamp = this.timestamp;
    this.#sentAtMs = nowMs;
    this.#sentMs = lastTicks / TICKS_PER_MS;
    this.packetsSent += packets;
    this.octetsSent += octets;
  }

  /** Records that a packet of the source is not forwarded, so that its number leaves no gap. */
  skip(header: RtpHeader): void {
    if (header.ssrc !== this.#source) return;
    const ahead = sequenceDelta(header.sequence, this.#sourceSequence);
    if (ahead <= 0 || ahead > MAX_DROPOUT) return;
    this.#sourceSequence = header.sequence;
    this.#sequenceOffset -= 1;
    this.#floorSequence = (header.sequence + 1) & 0xffff;
  }

  /** As `admit`, for a generated 20 ms frame. */
  admitGenerated(nowMs: number, payloadBytes: number = FRAME_SAMPLES): void {
    const isLongAgo = nowMs - this.#sentAtMs > LONGEST_STALL_MS;
    const isOtherSource = this.#source !== GENERATOR && !this.#isBetweenFrames;
    const isNewRun = isOtherSource || this.#isAfterPause || isLongAgo;
    this.#isBetweenFrames = false;
    if (isNewRun) this.#rebase(GENERATOR, 0, 0, nowMs);
    else {
      this.#source = GENERATOR;
      this.marker = false;
      this.sequence = (this.#sentSequence + 1) & 0xffff;
      this.timestamp = (this.#sentTimestamp + FRAME_MS * this.#clockPerMs) >>> 0;
    }
    this.#isAfterPause = false;
    this.#earlierTimestamp = this.#sentTimestamp;
    this.#earlierAtMs = this.#sentAtMs;
    this.#sentSequence = this.sequence;
    this.#sentTimestamp = this.timestamp;
    // When it was due, so that short gaps add up to a long one.
    this.#sentAtMs = isNewRun ? nowMs : this.#sentAtMs + FRAME_MS;
    this.#count(payloadBytes, nowMs);
  }

  /**
   * Withdraws the generated frame that was just admitted, because a pause sends nothing. The next one is measured from
   * the last that was sent: measured from each other, frames of a late thread would add up to more than the time.
   */
  suppress(payloadBytes: number = FRAME_SAMPLES): void {
    this.#isAfterPause = true;
    this.#sentSequence = (this.#sentSequence - 1) & 0xffff;
    this.#sentTimestamp = this.#earlierTimestamp;
    this.#sentAtMs = this.#earlierAtMs;
    this.packetsSent -= 1;
    this.octetsSent -= payloadBytes;
  }

  /** As `admit`, for generated comfort noise. The next packet carries the marker (RFC 3551 §4.1). */
  admitPause(nowMs: number, payloadBytes: number): void {
    this.#rebase(GENERATOR, 0, 0, nowMs);
    this.marker = false;
    this.#isAfterPause = true;
    this.#sentSequence = this.sequence;
    this.#sentTimestamp = this.timestamp;
    this.#sentAtMs = nowMs;
    this.#count(payloadBytes, nowMs);
  }

  /**
   * As `admit`, for a generated telephone event packet. All packets of an event carry its start timestamp (RFC 4733
   * §2.5.1.2), and the first one the marker.
   */
  admitEvent(nowMs: number, isFirst: boolean, payloadBytes: number): void {
    if (isFirst) {
      this.#rebase(GENERATOR, 0, 0, nowMs);
      this.#sentTimestamp = this.timestamp;
      this.#sentAtMs = nowMs;
    } else {
      this.marker = false;
      this.sequence = (this.#sentSequence + 1) & 0xffff;
      this.timestamp = this.#sentTimestamp;
    }
    this.#isAfterPause = true;
    this.#sentSequence = this.sequence;
    this.#count(payloadBytes, nowMs);
  }

  /** The timestamp of a sample taken at this time, for sender reports. */
  timestampAt(nowMs: number): number {
    if (!this.#hasSent) return this.timestamp;
    return (this.#sentTimestamp + Math.round((nowMs - this.#sentAtMs) * this.#clockPerMs)) >>> 0;
  }

  #isNewSource(header: RtpHeader, nowMs: number, isEvent: boolean): boolean {
    if (header.ssrc !== this.#source) return true;
    const ahead = sequenceDelta(header.sequence, this.#sourceSequence);
    if (ahead > MAX_DROPOUT || ahead < -MAX_MISORDER) return true;
    if (this.#beganWithEvent && !isEvent && ahead > 0) return true;
    const leap = timestampDelta(header.timestamp, this.#sourceTimestamp);
    const elapsed = Math.round((nowMs - this.#sourceAtMs) * this.#clockPerMs);
    const largestLeap = MAX_TIMESTAMP_LEAP_MS * this.#clockPerMs;
    return Math.abs(leap) > largestLeap && Math.abs(leap - elapsed) > largestLeap;
  }

  #rebase(source: number, sequence: number, timestamp: number, nowMs: number): void {
    const elapsed = Math.round((nowMs - this.#sentAtMs) * this.#clockPerMs);
    this.marker = true;
    this.sequence = (this.#sentSequence + 1) & 0xffff;
    // Some peers pack 60 ms, whose time must not be used again.
    const least = Math.round(Math.max(FRAME_MS, this.#sentMs) * this.#clockPerMs);
    if (this.#hasSent) this.timestamp = (this.#sentTimestamp + Math.max(least, elapsed)) >>> 0;
    this.#sentMs = FRAME_MS;
    this.#source = source;
    this.#sourceSequence = sequence;
    this.#floorSequence = sequence;
    this.#sourceTimestamp = timestamp;
    this.#sourceAtMs = nowMs;
    this.#sequenceOffset = this.sequence - sequence;
    this.#timestampOffset = this.timestamp - timestamp;
  }

  #advance(header: RtpHeader, nowMs: number, isEvent: boolean, ticks: number): void {
    this.#sourceSequence = header.sequence;
    this.#raiseFloor();
    this.#sentSequence = this.sequence;
    // An event keeps the timestamp of its start, so later audio is measured from the audio before it.
    if (isEvent) return;
    this.#sourceTimestamp = header.timestamp;
    this.#sourceAtMs = nowMs;
    this.#sentTimestamp = this.timestamp;
    this.#sentAtMs = nowMs;
    this.#sentMs = ticks / TICKS_PER_MS;
  }

  /** Keeps the floor near: after half of all sequence numbers it would seem to lie ahead, and late packets below it. */
  #raiseFloor(): void {
    if (sequenceDelta(this.#sourceSequence, this.#floorSequence) <= MAX_MISORDER) return;
    this.#floorSequence = (this.#sourceSequence - MAX_MISORDER) & 0xffff;
  }

  #count(payloadBytes: number, nowMs: number): void {
    if (!this.#hasSent) this.#sentAtMs = nowMs;
    this.#hasSent = true;
    this.packetsSent += 1;
    this.octetsSent += payloadBytes;
  }

  dump(): unknown {
    const { ssrc, packetsSent, octetsSent } = this;
    return { ssrc, packetsSent, octetsSent, isGenerated: this.#source === GENERATOR };
  }
}
