import { readUint16, readUint32, writeUint16, writeUint32 } from './packet.ts';

/** RTCP compound packets (RFC 3550 §6): sender and receiver reports, SDES and BYE. */

const SENDER_REPORT = 200;
const RECEIVER_REPORT = 201;
const SOURCE_DESCRIPTION = 202;
const GOODBYE = 203;
const REPORT_BLOCK_BYTES = 24;
const SDES_CNAME = 1;

export interface ReportBlock {
  /** The reported stream. */
  ssrc: number;
  /** Loss since the previous report, in 1/256. */
  fractionLost: number;
  /** 24 bits, signed. */
  packetsLost: number;
  extendedHighestSequence: number;
  /** In timestamp units. */
  jitter: number;
  /** Middle 32 bits of the NTP time of the last received sender report; 0 without one. */
  lastSenderReport: number;
  /** In 1/65536 s; 0 without one. */
  delaySinceLastSenderReport: number;
}

interface SenderInfo {
  ntpSeconds: number;
  ntpFraction: number;
  rtpTimestamp: number;
  packetCount: number;
  octetCount: number;
}

type RtcpPacket =
  | { type: 'sender-report'; ssrc: number; sender: SenderInfo; reports: ReportBlock[] }
  | { type: 'receiver-report'; ssrc: number; reports: ReportBlock[] }
  | { type: 'source-description'; ssrc: number; cname: string | null }
  | { type: 'goodbye'; ssrcs: number[] }
  | { type: 'other'; packetType: number };

/**
 * Parses a compound packet. Null for a wrong version or length, or a body shorter than its count field claims (RFC 3550
 * A.2). Unknown packet types are returned as `other`.
 */
export function parseRtcp(datagram: Uint8Array): RtcpPacket[] | null {
  if (datagram.length < 4) return null;
  const packets: RtcpPacket[] = [];
  let offset = 0;
  while (offset < datagram.length) {
    if (offset + 4 > datagram.length || datagram[offset]! >> 6 !== 2) return null;
    const packetType = datagram[offset + 1]!;
    if (packetType < 192 || packetType > 223) return null;
    const end = offset + 4 + readUint16(datagram, offset + 2) * 4;
    if (end > datagram.length) return null;
    const packet = parseOne(datagram, offset, end, packetType);
    if (packet === null) return null;
    packets.push(packet);
    offset = end;
  }
  return packets;
}

function parseOne(bytes: Uint8Array, offset: number, end: number, packetType: number): RtcpPacket | null {
  const count = bytes[offset]! & 0x1f;
  const body = offset + 4;
  switch (packetType) {
    case SENDER_REPORT: {
      if (body + 24 + count * REPORT_BLOCK_BYTES > end) return null;
      const sender = {
        ntpSeconds: readUint32(bytes, body + 4),
        ntpFraction: readUint32(bytes, body + 8),
        rtpTimestamp: readUint32(bytes, body + 12),
        packetCount: readUint32(bytes, body + 16),
        octetCount: readUint32(bytes, body + 20),
      };
      const reports = parseReportBlocks(bytes, body + 24, count);
      return { type: 'sender-report', ssrc: readUint32(bytes, body), sender, reports };
    }
    case RECEIVER_REPORT: {
      if (body + 4 + count * REPORT_BLOCK_BYTES > end) return null;
      const reports = parseReportBlocks(bytes, body + 4, count);
      return { type: 'receiver-report', ssrc: readUint32(bytes, body), reports };
    }
    case SOURCE_DESCRIPTION:
      if (count === 0) return { type: 'other', packetType };
      if (body + 4 > end) return null;
      return { type: 'source-description', ssrc: readUint32(bytes, body), cname: parseCname(bytes, body + 4, end) };
    case GOODBYE: {
      if (body + count * 4 > end) return null;
      const ssrcs = Array.from({ length: count }, (_, index) => readUint32(bytes, body + index * 4));
      return { type: 'goodbye', ssrcs };
    }
    default:
      return { type: 'other', packetType };
  }
}

function parseReportBlocks(bytes: Uint8Array, start: number, count: number): ReportBlock[] {
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * REPORT_BLOCK_BYTES;
    const lossWord = readUint32(bytes, at + 4);
    return {
      ssrc: readUint32(bytes, at),
      fractionLost: lossWord >>> 24,
      packetsLost: (lossWord << 8) >> 8,
      extendedHighestSequence: readUint32(bytes, at + 8),
      jitter: readUint32(bytes, at + 12),
      lastSenderReport: readUint32(bytes, at + 16),
      delaySinceLastSenderReport: readUint32(bytes, at + 20),
    };
  });
}

/** The CNAME of the first chunk; null if missing or truncated. */
function parseCname(bytes: Uint8Array, start: number, end: number): string | null {
  let at = start;
  while (at + 2 <= end && bytes[at] !== 0) {
    const length = bytes[at + 1]!;
    if (at + 2 + length > end) return null;
    if (bytes[at] === SDES_CNAME) return Buffer.from(bytes.subarray(at + 2, at + 2 + length)).toString('utf8');
    at += 2 + length;
  }
  return null;
}

interface RtcpReport {
  ssrc: number;
  cname: string;
  /** Set if we sent since the last report: makes it a sender report. */
  sender: SenderInfo | null;
  /** At most 31. */
  reports: readonly ReportBlock[];
  /** Adds a BYE. */
  isLast?: boolean;
}

/** Builds a compound packet: SR or RR, SDES with the CNAME (mandatory, RFC 3550 §6.1), and a BYE if it is the last. */
export function buildRtcpReport(report: RtcpReport): Buffer {
  const cname = Buffer.from(report.cname, 'utf8').subarray(0, 255);
  const reports = report.reports.slice(0, 31);
  const reportBytes = 8 + (report.sender === null ? 0 : 20) + reports.length * REPORT_BLOCK_BYTES;
  // Item type, length, text and at least one zero octet, padded to 32 bits.
  const descriptionBytes = 8 + Math.ceil((2 + cname.length + 1) / 4) * 4;
  const goodbyeBytes = report.isLast === true ? 8 : 0;
  const packet = Buffer.alloc(reportBytes + descriptionBytes + goodbyeBytes);

  const reportType = report.sender === null ? RECEIVER_REPORT : SENDER_REPORT;
  writeHead(packet, 0, { count: reports.length, packetType: reportType, bytes: reportBytes, ssrc: report.ssrc });
  let at = 8;
  if (report.sender !== null) at = writeSenderInfo(packet, at, report.sender);
  for (const block of reports) at = writeReportBlock(packet, at, block);

  writeHead(packet, at, { count: 1, packetType: SOURCE_DESCRIPTION, bytes: descriptionBytes, ssrc: report.ssrc });
  packet[at + 8] = SDES_CNAME;
  packet[at + 9] = cname.length;
  packet.set(cname, at + 10);
  at += descriptionBytes;
  if (goodbyeBytes > 0) writeHead(packet, at, { count: 1, packetType: GOODBYE, bytes: 8, ssrc: report.ssrc });
  return packet;
}

interface RtcpHead {
  count: number;
  packetType: number;
  bytes: number;
  ssrc: number;
}

function writeHead(target: Uint8Array, at: number, head: RtcpHead): void {
  target[at] = 0x80 | head.count;
  target[at + 1] = head.packetType;
  writeUint16(target, at + 2, head.bytes / 4 - 1);
  writeUint32(target, at + 4, head.ssrc);
}

function writeSenderInfo(target: Uint8Array, at: number, sender: SenderInfo): number {
  writeUint32(target, at, sender.ntpSeconds);
  writeUint32(target, at + 4, sender.ntpFraction);
  writeUint32(target, at + 8, sender.rtpTimestamp);
  writeUint32(target, at + 12, sender.packetCount);
  writeUint32(target, at + 16, sender.octetCount);
  return at + 20;
}

function writeReportBlock(target: Uint8Array, at: number, block: ReportBlock): number {
  const packetsLost = Math.max(-0x800000, Math.min(0x7fffff, block.packetsLost));
  writeUint32(target, at, block.ssrc);
  writeUint32(target, at + 4, (block.fractionLost << 24) | (packetsLost & 0xffffff));
  writeUint32(target, at + 8, block.extendedHighestSequence);
  writeUint32(target, at + 12, block.jitter);
  writeUint32(target, at + 16, block.lastSenderReport);
  writeUint32(target, at + 20, block.delaySinceLastSenderReport);
  return at + REPORT_BLOCK_BYTES;
}

/** Seconds between the NTP epoch (1900) and the Unix one. */
const NTP_UNIX_OFFSET_S = 2_208_988_800;

/** Wall-clock milliseconds as the two words of an NTP timestamp (RFC 3550 §4). */
export function ntpTime(unixMs: number): { seconds: number; fraction: number } {
  const wholeSeconds = Math.floor(unixMs / 1000);
  const fraction = Math.floor(((unixMs - wholeSeconds * 1000) / 1000) * 2 ** 32);
  return { seconds: (wholeSeconds + NTP_UNIX_OFFSET_S) >>> 0, fraction: fraction >>> 0 };
}

/** The middle 32 bits of an NTP timestamp, used for round-trip times. */
export function ntpMiddle(seconds: number, fraction: number): number {
  return (((seconds & 0xffff) << 16) | (fraction >>> 16)) >>> 0;
}
