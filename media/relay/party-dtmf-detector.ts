import { DtmfDetector } from '../dsp/dtmf-detector.ts';
import type { PacketAudio } from '../recording/timeline.ts';
import { timestampDelta } from '../rtp/receiver-statistics.ts';

/**
 * Detects key presses as tones in a party's packets, in timestamp order, ignoring late ones. A gap with missing
 * sequence numbers is a loss, any other is unsent silence.
 */

/** A press is reported without packets for this long. */
const SILENT_AFTER_MS = 200;
/** A larger timestamp jump starts a new stream, as does a new source. */
const MOST_GAP_SAMPLES = 8000;

export class PartyDtmfDetector {
  readonly #detector: DtmfDetector;
  #ssrc = -1;
  /** Expected in the next packet. */
  #sequence = 0;
  #timestamp = 0;
  #receivedAtMs = 0;

  /** `onPress` is called once per press, at its end or when its packets stop. */
  constructor(onPress: (digit: string, durationMs: number) => void) {
    this.#detector = new DtmfDetector(onPress);
  }

  /** Allocates nothing. */
  addAudio(audio: PacketAudio, nowMs: number): void {
    const { codec, ssrc, sequence, timestamp, ticks } = audio;
    const gap = ssrc === this.#ssrc ? timestampDelta(timestamp, this.#timestamp) : MOST_GAP_SAMPLES + 1;
    if (gap < 0 && gap >= -MOST_GAP_SAMPLES) return;
    if (gap > MOST_GAP_SAMPLES || gap < 0) this.#detector.end();
    else if (gap > 0 && sequence === this.#sequence) this.#detector.addSilence(gap);
    else if (gap > 0) this.#detector.addLoss(gap);
    this.#ssrc = ssrc;
    this.#sequence = (sequence + 1) & 0xffff;
    this.#timestamp = (timestamp + ticks) >>> 0;
    this.#receivedAtMs = nowMs;
    if (codec !== 'PCMU' && codec !== 'PCMA') this.#detector.addSamples(audio.narrow(), ticks);
    else this.#detector.addG711(codec, audio.datagram, audio.payloadOffset, audio.payloadOffset + ticks);
  }

  /** Reports a press that no packets follow. Call every few hundred milliseconds. */
  judge(nowMs: number): void {
    if (nowMs - this.#receivedAtMs > SILENT_AFTER_MS) this.#detector.reportPress();
  }

  /** Call when the party pauses or detection stops. */
  end(): void {
    this.#detector.end();
  }
}
