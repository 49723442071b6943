import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import type { Softphone } from '../softphone/softphone.ts';
import { toneLevelDbov } from '../tone-level.ts';

const SAMPLES_PER_S = 8000;
/** A busy machine transports audio late, and with gaps. */
const SETTLING_MS = 10_000;
/** A tone above the first level is audible, and one below the second is not. */
export const AUDIBLE_DBOV = -25;
export const INAUDIBLE_DBOV = -45;

/** Waits for another half second of audio, and returns the level of a tone in its second half. */
export async function nextLevel(phone: Softphone, frequencyHz: number): Promise<number> {
  return (await nextLevels(phone, [frequencyHz]))[0]!;
}

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

/** Waits until a phone receives these tones, and none of the others. */
export async function untilAudible(
  phone: Softphone,
  { audible, inaudible }: Record<'audible' | 'inaudible', readonly number[]>,
): Promise<void> {
  await eventually(async () => {
    const levels = await nextLevels(phone, [...audible, ...inaudible]);
    for (const level of levels.splice(0, audible.length)) expect(level).toBeGreaterThan(AUDIBLE_DBOV);
    for (const level of levels) expect(level).toBeLessThan(INAUDIBLE_DBOV);
  }, SETTLING_MS);
}

async function nextLevels(phone: Softphone, frequenciesHz: readonly number[]): Promise<number[]> {
  const { packets } = phone.received();
  await phone.untilReceived((received) => received.packets >= packets + 25);
  const pcm = phone.received().pcm.subarray(-SAMPLES_PER_S / 4);
  return frequenciesHz.map((frequencyHz) => toneLevelDbov(pcm, frequencyHz));
}
