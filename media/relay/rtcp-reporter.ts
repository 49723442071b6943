import { randomUUID } from 'node:crypto';
import type { ReceiverStatistics } from '../rtp/receiver-statistics.ts';
import { buildRtcpReport, ntpMiddle, ntpTime, parseRtcp, type ReportBlock } from '../rtp/rtcp.ts';
import type { OutboundStream } from './outbound-stream.ts';

/**
 * RTCP of one leg: our reports on both streams, and the peer's reports. It is not forwarded between legs, because their
 * SSRCs, clocks and losses differ.
 */

/** RFC 3550 §6.2: five seconds on average, randomised by half so that legs do not report in step. */
const REPORT_INTERVAL_MS = 5000;
const MOST_ROUND_TRIP_MS = 10_000;

interface RtcpReporterOptions {
  outbound: OutboundStream;
  reception: ReceiverStatistics;
  nowMs: number;
}

export class RtcpReporter {
  reportsSent = 0;
  reportsReceived = 0;
  malformed = 0;
  /** From the peer's last report about us; null before. */
  roundTripMs: number | null = null;
  readonly #outbound: OutboundStream;
  readonly #reception: ReceiverStatistics;
  /** RFC 7022: random, reveals nothing about host or user. */
  readonly #cname = randomUUID();
  #dueAtMs: number;
  #packetsReported = 0;
  #peerReportNtpMiddle = 0;
  #peerReportAtMs = 0;

  constructor(options: RtcpReporterOptions) {
    this.#outbound = options.outbound;
    this.#reception = options.reception;
    this.#dueAtMs = options.nowMs + REPORT_INTERVAL_MS * (0.5 + Math.random());
  }

  /** The compound packet to send now; null if not yet due. */
  takeDueReport(nowMs: number, unixMs: number): Buffer | null {
    if (nowMs < this.#dueAtMs) return null;
    this.#dueAtMs = nowMs + REPORT_INTERVAL_MS * (0.5 + Math.random());
    return this.#report(nowMs, unixMs, false);
  }

  farewell(nowMs: number, unixMs: number): Buffer {
    return this.#report(nowMs, unixMs, true);
  }

  /** Parses RTCP of the peer. Counts and ignores malformed packets. */
  receive(datagram: Uint8Array, nowMs: number, unixMs: number): void {
    const packets = parseRtcp(datagram);
    if (packets === null) {
      this.malformed += 1;
      return;
    }
    this.reportsReceived += 1;
    for (const packet of packets) {
      if (packet.type === 'sender-report') {
        this.#peerReportNtpMiddle = ntpMiddle(packet.sender.ntpSeconds, packet.sender.ntpFraction);
        this.#peerReportAtMs = nowMs;
      }
      if (packet.type === 'sender-report' || packet.type === 'receiver-report') {
        for (const report of packet.reports) this.#measureRoundTrip(report, unixMs);
      }
    }
  }

  #measureRoundTrip(report: ReportBlock, unixMs: number): void {
    if (report.ssrc !== this.#outbound.ssrc || report.lastSenderReport === 0) return;
    const { seconds, fraction } = ntpTime(unixMs);
    const units = (ntpMiddle(seconds, fraction) - report.lastSenderReport - report.delaySinceLastSenderReport) | 0;
    const roundTripMs = (units * 1000) / 65536;
    if (roundTripMs >= 0 && roundTripMs <= MOST_ROUND_TRIP_MS) this.roundTripMs = roundTripMs;
  }

  #report(nowMs: number, unixMs: number, isLast: boolean): Buffer {
    const { ssrc, packetsSent, octetsSent } = this.#outbound;
    const isSender = packetsSent > this.#packetsReported;
    this.#packetsReported = packetsSent;
    this.reportsSent += 1;
    const { seconds, fraction } = ntpTime(unixMs);
    const sender = isSender
      ? {
          ntpSeconds: seconds,
          ntpFraction: fraction,
          rtpTimestamp: this.#outbound.timestampAt(nowMs),
          packetCount: packetsSent,
          octetCount: octetsSent,
        }
      : null;
    return buildRtcpReport({ ssrc, cname: this.#cname, sender, reports: this.#reportBlocks(nowMs), isLast });
  }

  #reportBlocks(nowMs: number): ReportBlock[] {
    const reception = this.#reception;
    if (reception.ssrc === -1) return [];
    const hasPeerReport = this.#peerReportNtpMiddle !== 0;
    const delay = Math.round(((nowMs - this.#peerReportAtMs) * 65536) / 1000);
    return [
      {
        ssrc: reception.ssrc,
        fractionLost: reception.takeFractionLost(),
        packetsLost: reception.packetsLost,
        extendedHighestSequence: reception.extendedHighestSequence,
        jitter: reception.jitterTimestampUnits,
        lastSenderReport: this.#peerReportNtpMiddle,
        delaySinceLastSenderReport: hasPeerReport ? delay >>> 0 : 0,
      },
    ];
  }
}
