import { estimateMos } from '../dsp/mos.ts';
import type { LegSample } from '../media-plane.ts';
import type { ReceiverStatistics } from '../rtp/receiver-statistics.ts';
import type { RtcpReporter } from './rtcp-reporter.ts';

interface QualitySamplerOptions {
  reception: Pick<ReceiverStatistics, 'packetsReceived' | 'packetsLost' | 'packetsExpected' | 'jitterMs'>;
  rtcp: Pick<RtcpReporter, 'roundTripMs'>;
}

/** Splits the reception of a leg into samples, one per `take`. */
export class QualitySampler {
  readonly #options: QualitySamplerOptions;
  /** Totals at the last sample. */
  #before = { packetsReceived: 0, packetsLost: 0, packetsExpected: 0 };

  constructor(options: QualitySamplerOptions) {
    this.#options = options;
  }

  /** Null if nothing was received or lost since the last sample. */
  take(): LegSample | null {
    const { reception, rtcp } = this.#options;
    const { packetsReceived, packetsLost, packetsExpected, jitterMs } = reception;
    const { roundTripMs } = rtcp;
    const before = this.#before;
    this.#before = { packetsReceived, packetsLost, packetsExpected };
    const received = packetsReceived - before.packetsReceived;
    // A late packet reverts a loss of an earlier sample.
    const lost = Math.max(0, packetsLost - before.packetsLost);
    if (received === 0 && lost === 0) return null;
    const expected = Math.max(received, packetsExpected - before.packetsExpected);
    const mos = received === 0 ? null : estimateMos({ lossFraction: lost / expected, jitterMs, roundTripMs });
    return {
      packetsReceived: received,
      packetsLost: lost,
      jitterMs: hundredths(jitterMs),
      roundTripMs: roundTripMs === null ? null : hundredths(roundTripMs),
      mos: mos === null ? null : hundredths(mos),
    };
  }
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
