import { CODECS, type LegQuality } from '../machines/events.ts';

/** Made-up SSRCs, because the real ones are not stored. */
const OUR_SSRC = 1;
const PEER_SSRC = 2;
const MOST_LOST = 0x7f_ffff;
/** Marks unmeasured metrics (RFC 3611 §4.7.4, §4.7.5). */
const UNAVAILABLE = 127;

/**
 * Builds an RTCP packet from us to a peer about the peer's packets: a receiver report (RFC 3550 §6.4.2) with VoIP
 * metrics (RFC 3611 §4.7).
 */
export function rtcpReport(quality: LegQuality): Buffer {
  const { packets_received: received, packets_lost: lost, jitter_ms: jitterMs, mos } = quality;
  const lossRate = received + lost === 0 ? 0 : Math.min(255, Math.floor((lost * 256) / (received + lost)));
  const report = Buffer.alloc(32);
  report.writeUInt8(0x81, 0);
  report.writeUInt8(RECEIVER_REPORT, 1);
  report.writeUInt16BE(report.length / 4 - 1, 2);
  report.writeUInt32BE(OUR_SSRC, 4);
  report.writeUInt32BE(PEER_SSRC, 8);
  report.writeUInt32BE(((lossRate << 24) | Math.min(lost, MOST_LOST)) >>> 0, 12);
  report.writeUInt32BE((received + lost) >>> 0, 16);
  report.writeUInt32BE(Math.round((jitterMs * CODECS[quality.codec].clockHz) / 1000), 20);

  const metrics = Buffer.alloc(44);
  metrics.writeUInt8(0x80, 0);
  metrics.writeUInt8(EXTENDED_REPORT, 1);
  metrics.writeUInt16BE(metrics.length / 4 - 1, 2);
  metrics.writeUInt32BE(OUR_SSRC, 4);
  metrics.writeUInt8(VOIP_METRICS, 8);
  metrics.writeUInt16BE(8, 10);
  metrics.writeUInt32BE(PEER_SSRC, 12);
  metrics.writeUInt8(lossRate, 16);
  // Signal level, noise level, and residual echo return loss.
  metrics.fill(UNAVAILABLE, 28, 31);
  // Gmin, the limit between gaps and bursts.
  metrics.writeUInt8(16, 31);
  // R factor and external R factor; then listening and conversational MOS.
  metrics.fill(UNAVAILABLE, 32, 36);
  if (mos !== null) metrics.writeUInt8(Math.round(mos * 10), 34);
  return Buffer.concat([report, metrics]);
}

const RECEIVER_REPORT = 201;
const EXTENDED_REPORT = 207;
const VOIP_METRICS = 7;
