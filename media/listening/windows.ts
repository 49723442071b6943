import { RECOGNITION_RATE_HZ } from '../../machines/utterances.ts';

/** Voice detection works on windows of 32 ms at 16 kHz, on whose borders utterances begin and end. */
export const WINDOW_SAMPLES = 512;
export const WINDOW_MS = (1000 * WINDOW_SAMPLES) / RECOGNITION_RATE_HZ;

export type WindowKind = 'background' | 'speech' | 'tone';

export function windowsIn(durationMs: number): number {
  return Math.ceil(durationMs / WINDOW_MS);
}
