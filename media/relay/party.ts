import type { HeardParty } from '../media-plane.ts';
import type { Channel } from '../recording/timeline.ts';
import type { AnswerEar } from './answer-ear.ts';
import type { DigitEar } from './digit-ear.ts';
import type { RelayLeg } from './leg.ts';
import type { LegTap } from './leg-tap.ts';
import { PacketAllowance } from './packet-allowance.ts';
import type { Playout } from './playout.ts';

/** One party of a session: its endpoint, who hears it, and what else is done with what it says. */
export class Party {
  readonly id: string;
  readonly rtpPort: number;
  readonly leg: RelayLeg;
  /** Parties that hear this one alone: each packet is forwarded to them as it came. */
  forwardsTo: readonly Party[] = [];
  /** Plays out what this party says; null while nobody hears it in a mix or by another codec. */
  playout: Playout | null = null;
  /** The party that this one hears alone by another codec; null while it gets packets as they come, or others. */
  transcodes: Party | null = null;
  /** What this party hears in a mix; empty while it hears one party alone, a tone or nothing. */
  mixOf: readonly HeardParty[] = [];
  /** Silence of this party posts `rtp.timeout`. */
  isWatched = false;
  /** Null while it is not recorded. */
  recordedOn: Channel | null = null;
  /** The channel on which it is recorded beside the party that the channel is for; null: on none. */
  recordedBesideOn: Channel | null = null;
  tap: LegTap | null = null;
  /** The tap gets silence instead of what the party says. */
  isTapMuted = false;
  /** Detects who or what has answered. Null while detection does not run. */
  answerEar: AnswerEar | null = null;
  /** Detects keys as tones. Null for a peer that agreed to telephone events, and while the party is not in a talk. */
  digitEar: DigitEar | null = null;
  expectedSinceMs = 0;
  isTimedOut = false;
  readonly allowance = new PacketAllowance();
  keyPressesThisTick = 0;

  constructor(id: string, rtpPort: number, leg: RelayLeg) {
    this.id = id;
    this.rtpPort = rtpPort;
    this.leg = leg;
  }

  /** Whether what it says is recorded or listened to. */
  get hasEars(): boolean {
    return this.recordedOn !== null || this.tap !== null || this.answerEar !== null || this.digitEar !== null;
  }

  /** Whether something is sent to it at the pace of frames: a sound of ours, a mix, or another party's playout. */
  get needsFrames(): boolean {
    return this.leg.loopedSound !== null || this.mixOf.length > 0 || this.transcodes !== null;
  }

  dump(): unknown {
    return {
      ...this.leg.dump(),
      forwardsTo: this.forwardsTo.map(({ id }) => id),
      playout: this.playout?.dump() ?? null,
      transcodes: this.transcodes?.id ?? null,
      tap: this.tap?.dump() ?? null,
      answerEar: this.answerEar?.dump() ?? null,
      detectsTones: this.digitEar !== null,
    };
  }
}
