import { toneLevelDbov } from '../../media/dsp/goertzel.ts';
import type { Softphone } from '../softphone/softphone.ts';

const SAMPLES_PER_S = 8000;

/** Waits for another half second of audio, and returns the level of a tone in its second half. */
export async function nextLevel(phone: Softphone, frequencyHz: number): Promise<number> {
  const { packets } = phone.received();
  await phone.untilReceived((received) => received.packets >= packets + 25);
  return toneLevelDbov(phone.received().pcm.subarray(-SAMPLES_PER_S / 4), frequencyHz);
}
