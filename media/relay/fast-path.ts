import type { DatagramForwarder, DatagramMemory, Datagrams } from '../datagrams/datagrams.ts';
import { inNetworkOrder, writeIPv4Address } from '../datagrams/socket-address.ts';
import { meanPowerOfG711 } from '../dsp/level.ts';
import { enlarged } from '../enlarged.ts';
import { emptyRtpHeader, RTP_HEADER_BYTES, type RtpHeader } from '../rtp/packet.ts';
import { nextJitter, timestampDelta, transitOf } from '../rtp/receiver-statistics.ts';
import { systemPacerClock } from './frame-pacer.ts';
import { KeptAudio, MOST_KEPT_OCTETS } from './kept-audio.ts';
import { MOST_PAYLOAD_BYTES, type PayloadKind, type RelayLeg } from './leg.ts';
import { MAX_TIMESTAMP_LEAP_MS } from './outbound-stream.ts';
import { grownAllowance } from './packet-allowance.ts';
import type { Party } from './party.ts';

/**
 * Forwards packets from one party to its only listener in the receive buffer, without the objects of their session:
 * with hundreds of calls, reading those objects from memory took half of a relay's time. Only a packet that continues
 * its stream qualifies. All others go to `RelaySession`, and so does the 17th since the last `absorb`. The session also
 * decides which parties enter and leave.
 *
 * A row of the table has what one direction changed since the last `absorb`, which writes it to the objects: the
 * speaker's latch, allowance and statistics, and the listener's outbound stream. Audio for a recording, a meter or the
 * detection of keys is kept until then (`KeptAudio`); other audio only needs its power. The index of a row is the id of
 * the speaker's socket.
 */

/** Three cache lines: what a packet is compared with and changes, its clocks, and its levels. */
const ROW_WORDS = 48;

/** Id of the listener's socket plus one; 0 while the direction is not on the fast path. */
const LISTENER = 0;
/** Expected source, and where to send: the first words of a `sockaddr_in`. */
const SOURCE = 1;
const DESTINATION = 3;
/** First half of the first word of an RTP packet: version 2, no padding, extension, CSRC or marker, payload type. */
const HEAD = 5;
const SENT_HEAD = 6;
/** In the byte order of a packet. */
const SSRC = 7;
const SENT_SSRC = 8;
/** The last packet received. */
const SEQUENCE = 9;
const TIMESTAMP = 10;
const SEQUENCE_OFFSET = 11;
const TIMESTAMP_OFFSET = 12;
/** PLAIN_PCMU, PLAIN_PCMA or KEPT. */
const AUDIO = 13;
/** Not yet absorbed. */
const PACKETS = 14;
const OCTETS = 15;
const TRANSIT = 16;
const LAST_OCTETS = 17;

/** First words of doubles. */
const AT_MS = 18;
const JITTER = 20;
const ALLOWED_PACKETS = 22;

/** Words of the mean powers of packets that were not absorbed yet, unless their audio is kept. */
const POWERS = 32;
const MOST_PACKETS = 16;

/** Only the power of a packet is needed. */
const PLAIN_PCMU = 0;
const PLAIN_PCMA = 1;
/** The payload is needed at the next `absorb`. */
const KEPT = 2;

const CLOCK_PER_MS = 8;
const MOST_TIMESTAMP_LEAP = MAX_TIMESTAMP_LEAP_MS * CLOCK_PER_MS;

/** Shared by the sessions of a thread, and asked by their sockets before they are. */
export class FastPath implements DatagramForwarder {
  destination0 = 0;
  destination1 = 0;
  readonly #clock: { nowMs(): number };
  #words = new Int32Array(64 * ROW_WORDS);
  #doubles = new Float64Array(this.#words.buffer);
  #floats = new Float32Array(this.#words.buffer);
  readonly #kept = new KeptAudio(MOST_PACKETS);
  readonly #header = emptyRtpHeader();
  #nowMs = 0;

  /** @param clock of the sessions */
  constructor(datagrams: Datagrams, clock: { nowMs(): number } = systemPacerClock) {
    this.#clock = clock;
    datagrams.forwardBy(this);
  }

  beginTurn(): void {
    this.#nowMs = this.#clock.nowMs();
  }

  /** Allocates nothing. */
  forward(id: number, memory: DatagramMemory, at: number, bytes: number, source0: number, source1: number): number {
    const rows = this.#words;
    const row = id * ROW_WORDS;
    if (row >= rows.length || rows[row + LISTENER] === 0) return -1;
    const { words } = memory;
    const head = words[at]!;
    const sequence = ((head >>> 8) & 0xff00) | (head >>> 24);
    const timestamp = inNetworkOrder(words[at + 1]!);
    const payloadBytes = bytes - RTP_HEADER_BYTES;
    const packets = rows[row + PACKETS]!;
    const audio = rows[row + AUDIO]!;
    const isExpected =
      source1 === rows[row + SOURCE + 1] &&
      source0 === rows[row + SOURCE] &&
      (head & 0xffff) === rows[row + HEAD] &&
      words[at + 2] === rows[row + SSRC] &&
      sequence === ((rows[row + SEQUENCE]! + 1) & 0xffff) &&
      isLeapOfOneSource(timestampDelta(timestamp, rows[row + TIMESTAMP]!)) &&
      payloadBytes > 0 &&
      payloadBytes <= (audio === KEPT ? MOST_KEPT_OCTETS : MOST_PAYLOAD_BYTES) &&
      packets < MOST_PACKETS;
    if (!isExpected || !this.#isAllowed(row)) return -1;
    this.#measureJitter(row, timestamp);
    if (audio === KEPT)
      this.#kept.keep(id, packets, { words, at, octets: payloadBytes, timestamp, nowMs: this.#nowMs });
    else {
      const payload = 4 * at + RTP_HEADER_BYTES;
      const codec = audio === PLAIN_PCMA ? 'PCMA' : 'PCMU';
      this.#floats[row + POWERS + packets] = meanPowerOfG711(codec, memory.bytes, payload, payload + payloadBytes);
    }
    rows[row + PACKETS] = packets + 1;
    rows[row + OCTETS] = rows[row + OCTETS]! + payloadBytes;
    rows[row + LAST_OCTETS] = payloadBytes;
    rows[row + SEQUENCE] = sequence;
    rows[row + TIMESTAMP] = timestamp;
    const sent = sequence + rows[row + SEQUENCE_OFFSET]!;
    words[at] = rows[row + SENT_HEAD]! | ((sent & 0xff00) << 8) | (sent << 24);
    words[at + 1] = inNetworkOrder(timestamp + rows[row + TIMESTAMP_OFFSET]!);
    words[at + 2] = rows[row + SENT_SSRC]!;
    this.destination0 = rows[row + DESTINATION]!;
    this.destination1 = rows[row + DESTINATION + 1]!;
    return rows[row + LISTENER]! - 1;
  }

  /** Puts a direction on the fast path after one of its packets was forwarded, if its next one may take it. */
  enter(speaker: Party, header: RtpHeader, kind: PayloadKind): void {
    const { latch, reception, rtpSocketId: id } = speaker.leg;
    const listener = speaker.forwardsTo[0];
    const listenerId = listener?.leg.rtpSocketId ?? null;
    if (listener === undefined || id === null || listenerId === null) return;
    if (!isPlain(speaker, kind) || !listener.leg.receivesPlain(kind)) return;
    const { outbound, remote, rtpTarget } = listener.leg;
    if (!latch.source.isIPv4 || !rtpTarget.isIPv4 || !reception.isAt(header) || !outbound.isAt(header)) return;
    const isKept = speaker.hasLateConsumers || kind === 'G722';
    this.#makeRoom(id, isKept);
    const rows = this.#words;
    const row = id * ROW_WORDS;
    rows[row + LISTENER] = listenerId + 1;
    writeIPv4Address(rows, row + SOURCE, latch.source);
    writeIPv4Address(rows, row + DESTINATION, rtpTarget);
    rows[row + HEAD] = 0x80 | (header.payloadType << 8);
    rows[row + SENT_HEAD] = 0x80 | (remote!.payloadType << 8);
    rows[row + SSRC] = inNetworkOrder(header.ssrc);
    rows[row + SENT_SSRC] = inNetworkOrder(outbound.ssrc);
    rows[row + SEQUENCE] = header.sequence;
    rows[row + TIMESTAMP] = header.timestamp;
    rows[row + SEQUENCE_OFFSET] = outbound.sequence - header.sequence;
    rows[row + TIMESTAMP_OFFSET] = outbound.timestamp - header.timestamp;
    rows[row + AUDIO] = isKept ? KEPT : kind === 'PCMA' ? PLAIN_PCMA : PLAIN_PCMU;
    rows[row + PACKETS] = 0;
    rows[row + OCTETS] = 0;
    rows[row + TRANSIT] = reception.transit;
    this.#doubles[(row + AT_MS) / 2] = speaker.leg.lastReceivedAtMs;
    this.#doubles[(row + JITTER) / 2] = reception.jitter;
    this.#doubles[(row + ALLOWED_PACKETS) / 2] = speaker.allowance.packets;
    speaker.relaysTo = listener;
  }

  /** Brings the objects of the session up to date. */
  absorb(speaker: Party): void {
    const { leg, relaysTo } = speaker;
    if (relaysTo === null) return;
    const rows = this.#words;
    const row = leg.rtpSocketId! * ROW_WORDS;
    const packets = rows[row + PACKETS]!;
    if (packets === 0) return;
    const nowMs = this.#doubles[(row + AT_MS) / 2]!;
    leg.lastReceivedAtMs = nowMs;
    leg.latch.noteReceived(nowMs);
    leg.reception.addInOrder(packets, rows[row + TRANSIT]!, this.#doubles[(row + JITTER) / 2]!);
    speaker.allowance.restore(this.#doubles[(row + ALLOWED_PACKETS) / 2]!, nowMs);
    if (rows[row + AUDIO] === KEPT) this.#addKept(speaker, leg.rtpSocketId!, packets);
    else this.#addPowers(leg, row, packets);
    relaysTo.leg.noteRelayed({
      packets,
      octets: rows[row + OCTETS]!,
      lastTicks: rows[row + LAST_OCTETS]!,
      sequence: rows[row + SEQUENCE]!,
      timestamp: rows[row + TIMESTAMP]! >>> 0,
      nowMs,
    });
    rows[row + PACKETS] = 0;
    rows[row + OCTETS] = 0;
  }

  /** Before anything about a party or its listener changes. */
  leave(speaker: Party): void {
    if (speaker.relaysTo === null) return;
    this.absorb(speaker);
    this.#words[speaker.leg.rtpSocketId! * ROW_WORDS + LISTENER] = 0;
    speaker.relaysTo = null;
  }

  #makeRoom(id: number, isKept: boolean): void {
    if ((id + 1) * ROW_WORDS > this.#words.length) {
      this.#words = enlarged(this.#words, (id + 1) * ROW_WORDS);
      this.#doubles = new Float64Array(this.#words.buffer);
      this.#floats = new Float32Array(this.#words.buffer);
    }
    if (isKept) this.#kept.makeRoom(id);
  }

  #addPowers(leg: RelayLeg, row: number, packets: number): void {
    for (let i = 0; i < packets; i++) leg.snr.addFrame(this.#floats[row + POWERS + i]!);
    leg.forgetDecoded();
  }

  #addKept(speaker: Party, id: number, packets: number): void {
    const header = this.#header;
    const row = id * ROW_WORDS;
    const firstSequence = this.#words[row + SEQUENCE]! - packets + 1;
    header.ssrc = inNetworkOrder(this.#words[row + SSRC]!) >>> 0;
    for (let i = 0; i < packets; i++) {
      header.sequence = (firstSequence + i) & 0xffff;
      const arrivedAtMs = this.#kept.read(id, i, header);
      speaker.addAudio(speaker.leg.receivedCodec!, this.#kept.bytes, header, arrivedAtMs);
    }
  }

  /** As `PacketAllowance.take`. */
  #isAllowed(row: number): boolean {
    const doubles = this.#doubles;
    const nowMs = this.#nowMs;
    const at = (row + AT_MS) / 2;
    const allowed = (row + ALLOWED_PACKETS) / 2;
    const elapsedMs = nowMs - doubles[at]!;
    const packets = grownAllowance(doubles[allowed]!, elapsedMs);
    if (packets < 1) return false;
    if (elapsedMs > 0) doubles[at] = nowMs;
    doubles[allowed] = packets - 1;
    return true;
  }

  /** As `ReceiverStatistics`. */
  #measureJitter(row: number, timestamp: number): void {
    const transit = transitOf(timestamp, this.#nowMs, CLOCK_PER_MS);
    const at = (row + JITTER) / 2;
    this.#doubles[at] = nextJitter(this.#doubles[at]!, transit, this.#words[row + TRANSIT]!, CLOCK_PER_MS);
    this.#words[row + TRANSIT] = transit;
  }
}

/** Whether only one listener needs the next packet of a party when it arrives. */
function isPlain(speaker: Party, kind: PayloadKind): boolean {
  const { leg, forwardsTo, playout } = speaker;
  return (
    forwardsTo.length === 1 &&
    !speaker.hasPromptConsumers &&
    playout === null &&
    forwardsTo[0]!.answerDetector === null &&
    forwardsTo[0]!.transcodes === null &&
    !leg.isEncrypted &&
    leg.latch.isLatched &&
    leg.receivedCodec === kind &&
    kind !== 'OPUS'
  );
}

function isLeapOfOneSource(timestampUnits: number): boolean {
  return timestampUnits > 0 && timestampUnits <= MOST_TIMESTAMP_LEAP;
}
