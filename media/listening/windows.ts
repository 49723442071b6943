import { RECOGNITION_RATE_HZ } from '../../machines/utterances.ts';

/** Listening goes by windows of 32 ms at 16 kHz: what the voice detector judges, and the grid utterances begin and end on. */
export const WINDOW_SAMPLES = 512;
export const WINDOW_MS = (1000 * WINDOW_SAMPLES) / RECOGNITION_RATE_HZ;

/** What a window holds. */
export type WindowKind = 'background' | 'speech' | 'tone';

export function windowsIn(durationMs: number): number {
  return Math.ceil(durationMs / WINDOW_MS);
}
