import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import type { Softphone } from '../softphone/softphone.ts';
import { toneLevelDbov } from '../tone-level.ts';

const SAMPLES_PER_S = 8000;

/** Waits for another half second of audio, and returns the level of a tone in its second half. */
export async function nextLevel(phone: Softphone, frequencyHz: number): Promise<number> {
  const { packets } = phone.received();
  await phone.untilReceived((received) => received.packets >= packets + 25);
  return toneLevelDbov(phone.received().pcm.subarray(-SAMPLES_PER_S / 4), frequencyHz);
}

/** A busy machine transports audio late, and with gaps. */
export const SETTLING_MS = 10_000;

/** Waits until `nextLevel` is between these limits, in dBov. */
export async function untilLevel(
  phone: Softphone,
  frequencyHz: number,
  { above = Number.NEGATIVE_INFINITY, below = 0 }: { above?: number; below?: number },
): Promise<void> {
  await eventually(async () => {
    const level = await nextLevel(phone, frequencyHz);
    expect(level).toBeGreaterThan(above);
    expect(level).toBeLessThan(below);
  }, SETTLING_MS);
}
