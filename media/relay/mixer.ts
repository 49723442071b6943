import { FRAME_SAMPLES } from '../dsp/tones.ts';
import type { Party } from './party.ts';

/**
 * Sends each listener of a mix the sum of its parties without its own audio (N-1), 20 ms at a time. Each receives the
 * three loudest speakers, because more are mostly noise; RFC 4353 §3.1 leaves this to the mixer. A listener with a 16
 * kHz codec receives 16 kHz. The sum is clipped to 16 bits.
 */

const MOST_SPEAKERS = 3;

export class Mixer {
  readonly #sum = new Int32Array(2 * FRAME_SAMPLES);
  readonly #frame = new Int16Array(2 * FRAME_SAMPLES);
  readonly #loudest: Party[] = [];

  /** Sends a frame to every listener of a mix, from the frames that the parties have just played out. */
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
      // Insertion sort: a conference has few parties, and their order seldom changes.
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
    let speakers = 0;
    for (const speaker of this.#loudest) {
      const gain = gainOf(listener, speaker.id);
      if (gain === 0) continue;
      const frame = speaker.playout!.frameAt(isWide);
      for (let i = 0; i < count; i++) sum[i] = sum[i]! + frame[i]! * gain;
      speakers += 1;
      if (speakers === MOST_SPEAKERS) break;
    }
    for (let i = 0; i < count; i++) this.#frame[i] = Math.max(-32_768, Math.min(32_767, sum[i]!));
  }
}

/** 0 if `listener` does not receive the party. */
function gainOf(listener: Party, partyId: string): number {
  for (const source of listener.mixOf) {
    if (source.party === partyId) return source.gain ?? 1;
  }
  return 0;
}
