import { OpusDecoder, OpusEncoder } from '../codecs/opus.ts';

/** Opus codecs of a leg. They use memory outside JavaScript: close them. */
export interface LegOpus {
  encoder: OpusEncoder;
  /** Decodes packets in order of arrival, for recorder and detectors. */
  arrivals: OpusDecoder;
  /** Decodes packets in the order of the jitter buffer. */
  playout: OpusDecoder;
}

export async function openLegOpus(): Promise<LegOpus> {
  const [encoder, arrivals, playout] = await Promise.all([OpusEncoder.open(), OpusDecoder.open(), OpusDecoder.open()]);
  return { encoder, arrivals, playout };
}

export function closeLegOpus({ encoder, arrivals, playout }: LegOpus): void {
  for (const each of [encoder, arrivals, playout]) each.close();
}
