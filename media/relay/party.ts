import type { Codec } from '../../machines/events.ts';
import type { AudioSource } from '../media-plane.ts';
import type { SessionRecorder } from '../recording/session-recorder.ts';
import type { Channel } from '../recording/timeline.ts';
import type { RtpHeader } from '../rtp/packet.ts';
import { KeyPressDetector } from '../rtp/telephone-event.ts';
import type { RelayLeg } from './leg.ts';
import type { LegTap } from './leg-tap.ts';
import type { LevelMeter } from './level-meter.ts';
import { PacketAllowance } from './packet-allowance.ts';
import type { PartyAnswerDetector } from './party-answer-detector.ts';
import type { PartyDtmfDetector } from './party-dtmf-detector.ts';
import type { Playout } from './playout.ts';

interface PartyEvents {
  onPress: (digit: string, durationMs: number) => void;
  /** A consumer of its audio threw. */
  onFault: (error: unknown) => void;
}

/** One party of a session: its endpoint, its routing, and the consumers of its audio. */
export class Party {
  readonly id: string;
  readonly rtpPort: number;
  readonly leg: RelayLeg;
  readonly keyPresses: KeyPressDetector;
  forwardsTo: readonly Party[] = [];
  /** Parties that receive it in a mix, and its key presses beside the mix. */
  mixedFor: readonly Party[] = [];
  /** Playout of this party; null unless it is mixed or transcoded. */
  playout: Playout | null = null;
  /** The party that this one receives transcoded; null otherwise. */
  transcodes: Party | null = null;
  /** Parties mixed for this one; empty if it receives one party, a tone or nothing. */
  mixOf: readonly AudioSource[] = [];
  /** Silence of this party posts `rtp.timeout`. */
  isWatched = false;
  /** Its keys are detected as tones, unless it has telephone events. */
  mayPress = false;
  /** The running recording of the session; null without one. */
  recorder: SessionRecorder | null = null;
  /** Recording channel; null if not recorded. */
  recordedOn: Channel | null = null;
  /** Channel into which it is mixed besides that channel's own party; null: none. */
  recordedBesideOn: Channel | null = null;
  tap: LegTap | null = null;
  isTapMuted = false;
  /** Answering machine detection; null while it is off. */
  answerDetector: PartyAnswerDetector | null = null;
  /** Null while measurements are off. */
  meter: LevelMeter | null = null;
  /** Detects keys as tones. Null for a peer with telephone events, and outside a talk. */
  dtmfDetector: PartyDtmfDetector | null = null;
  /** The listener that receives its packets on the fast path; null while they take the session. */
  relaysTo: Party | null = null;
  expectedSinceMs = 0;
  isTimedOut = false;
  readonly allowance = new PacketAllowance();
  keyPressesThisTick = 0;

  readonly #onFault: PartyEvents['onFault'];

  constructor(id: string, rtpPort: number, leg: RelayLeg, { onPress, onFault }: PartyEvents) {
    this.id = id;
    this.rtpPort = rtpPort;
    this.leg = leg;
    this.keyPresses = new KeyPressDetector(onPress);
    this.#onFault = onFault;
  }

  /** Whether its audio is needed by the next tick. */
  get hasLateConsumers(): boolean {
    const isRecorded = this.recordedOn !== null || this.recordedBesideOn !== null;
    return this.meter !== null || this.dtmfDetector !== null || (isRecorded && this.recorder !== null);
  }

  /** Whether each packet is needed when it arrives. */
  get hasPromptConsumers(): boolean {
    return this.tap !== null || this.answerDetector !== null;
  }

  /** Decodes, measures, records and plays the audio of a packet. Allocates nothing. Never throws. */
  addAudio(codec: Codec, datagram: Uint8Array, header: RtpHeader, nowMs: number): void {
    try {
      this.#addAudio(codec, datagram, header, nowMs);
    } catch (error) {
      // The fast path adds audio in the session's tick, where an exception would end the thread with all its calls.
      this.#onFault(error);
    }
  }

  #addAudio(codec: Codec, datagram: Uint8Array, header: RtpHeader, nowMs: number): void {
    const { leg, recorder } = this;
    const audio = leg.decoded(codec, datagram, header);
    // Opus is not decoded just to be measured.
    if (codec !== 'OPUS' || this.hasLateConsumers || this.hasPromptConsumers) leg.snr.addFrame(audio.power);
    this.meter?.addFrame(audio.power, audio.ticks);
    if (this.recordedOn !== null) recorder?.addAudio(this.recordedOn, audio, nowMs);
    if (this.recordedBesideOn !== null) recorder?.addVoice(this.id, this.recordedBesideOn, audio, nowMs);
    if (!this.isTapMuted) this.tap?.addAudio(audio, nowMs);
    this.playout?.addAudio(audio, nowMs);
    this.answerDetector?.addAudio(audio, nowMs);
    this.dtmfDetector?.addAudio(audio, nowMs);
    const { forwardsTo } = this;
    for (let i = 0; i < forwardsTo.length; i++) forwardsTo[i]!.answerDetector?.noteSent(audio.power, nowMs);
  }

  /** Whether it receives generated frames: a looped sound, a mix, or a transcoded party. */
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
      answerDetector: this.answerDetector?.dump() ?? null,
      detectsTones: this.dtmfDetector !== null,
    };
  }
}
