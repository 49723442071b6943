import { OpusDecoder, OpusEncoder } from '../codecs/opus.ts';

/** What a leg that uses Opus needs. Its memory is not JavaScript's: close it. */
export interface LegOpus {
  encoder: OpusEncoder;
  /** Of packets in the order of their arrival, for recorder and ears. */
  arrivals: OpusDecoder;
  /** Of packets in the order of the jitter buffer. */
  playout: OpusDecoder;
}

export async function openLegOpus(): Promise<LegOpus> {
  const [encoder, arrivals, playout] = await Promise.all([OpusEncoder.open(), OpusDecoder.open(), OpusDecoder.open()]);
  return { encoder, arrivals, playout };
}

export function closeLegOpus({ encoder, arrivals, playout }: LegOpus): void {
  for (const each of [encoder, arrivals, playout]) each.close();
}
