import { FRAME_SAMPLES } from '../dsp/tones.ts';
import type { Party } from './party.ts';

/**
 * Sends to every party that hears a mix the sum of the parties that it hears, 20 ms at a time. Nobody hears themselves
 * (N-1), and of many speakers each listener hears the loudest three: a sum of more is noise, as RFC 4353 §3.1 leaves to
 * the mixer. A listener with a codec of 16 kHz hears them at 16 kHz. Samples beyond 16 bits are cut off.
 */

const MOST_SPEAKERS_HEARD = 3;

export class Mixer {
  readonly #sum = new Int32Array(2 * FRAME_SAMPLES);
  readonly #frame = new Int16Array(2 * FRAME_SAMPLES);
  readonly #loudest: Party[] = [];

  /** Sends a frame to every party that hears a mix, of the frames that the parties it hears have just played out. */
  sendFrames(parties: ReadonlyMap<string, Party>, nowMs: number): void {
    this.#sortByLevel(parties);
    for (const listener of parties.values()) {
      if (listener.mixOf.length === 0) continue;
      const isWide = listener.leg.wantsWideFrames;
      this.#mixFor(listener, isWide);
      listener.leg.sendMixed(this.#frame, nowMs, isWide);
    }
  }

  #sortByLevel(parties: ReadonlyMap<string, Party>): void {
    const loudest = this.#loudest;
    loudest.length = 0;
    for (const party of parties.values()) {
      const { playout } = party;
      if (playout === null) continue;
      // Insertion: a conference has few parties, whose order seldom changes.
      let place = loudest.length;
      while (place > 0 && loudest[place - 1]!.playout!.level < playout.level) {
        loudest[place] = loudest[place - 1]!;
        place -= 1;
      }
      loudest[place] = party;
    }
  }

  #mixFor(listener: Party, isWide: boolean): void {
    const count = isWide ? 2 * FRAME_SAMPLES : FRAME_SAMPLES;
    const sum = this.#sum;
    sum.fill(0);
    let heard = 0;
    for (const speaker of this.#loudest) {
      const gain = gainOf(listener, speaker.id);
      if (gain === 0) continue;
      const frame = speaker.playout!.frameAt(isWide);
      for (let i = 0; i < count; i++) sum[i] = sum[i]! + frame[i]! * gain;
      heard += 1;
      if (heard === MOST_SPEAKERS_HEARD) break;
    }
    for (let i = 0; i < count; i++) this.#frame[i] = Math.max(-32_768, Math.min(32_767, sum[i]!));
  }
}

/** 0 when `listener` does not hear the party. */
function gainOf(listener: Party, partyId: string): number {
  for (const heard of listener.mixOf) {
    if (heard.party === partyId) return heard.gain ?? 1;
  }
  return 0;
}
