interface LineConditions {
  /** 0 to 1. */
  lossFraction: number;
  jitterMs: number;
  /** From RTCP; null if the peer sends none. */
  roundTripMs: number | null;
}

/** G.113 appendix I: G.711 with packet loss concealment, random loss. */
const LOSS_ROBUSTNESS = 25.1;
/** The E-model's default rating of a clean narrow-band line (ITU-T G.107 §7.1, no impairments). */
const CLEAN_LINE_RATING = 93.2;
const PACKETISATION_MS = 20;

/**
 * Mean opinion score, 1.0 to 4.41, from the E-model (ITU-T G.107) reduced to RTP measurements: loss as effective
 * equipment impairment (§3.5 with Ie = 0), and delay with the slope of Cole and Rosenbluth (2001), assuming a jitter
 * buffer of twice the jitter.
 */
export function estimateMos(conditions: LineConditions): number {
  const lossPercent = 100 * Math.min(1, Math.max(0, conditions.lossFraction));
  const lossImpairment = (95 * lossPercent) / (lossPercent + LOSS_ROBUSTNESS);
  const delayMs =
    PACKETISATION_MS + 2 * Math.max(0, conditions.jitterMs) + Math.max(0, conditions.roundTripMs ?? 0) / 2;
  const delayImpairment = 0.024 * delayMs + 0.11 * Math.max(0, delayMs - 177.3);
  return ratingToMos(CLEAN_LINE_RATING - lossImpairment - delayImpairment);
}

/** ITU-T G.107 annex B. */
function ratingToMos(rating: number): number {
  if (rating <= 0) return 1;
  if (rating >= 100) return 4.5;
  return Math.max(1, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6);
}
