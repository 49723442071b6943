import { DtmfDetector } from '../dsp/dtmf-detector.ts';
import type { PacketAudio } from '../recording/timeline.ts';
import { timestampDelta } from '../rtp/receiver-statistics.ts';

/**
 * Detects the keys of a party as tones in its packets, in the order of their timestamps: a packet that comes after a
 * later one is left out. A gap is a loss if sequence numbers are missing too, otherwise silence that was not sent.
 */

/** A press ends when nothing comes for this long. */
const SILENT_AFTER_MS = 200;
/** Timestamps that leap further start anew, as does another source. */
const MOST_GAP_SAMPLES = 8000;

export class DigitEar {
  readonly #detector: DtmfDetector;
  #ssrc = -1;
  /** Of the packet that follows. */
  #sequence = 0;
  #timestamp = 0;
  #heardAtMs = 0;

  /** `onPress` is called once per press, at its end. */
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
    this.#heardAtMs = nowMs;
    if (codec !== 'PCMU' && codec !== 'PCMA') this.#detector.addSamples(audio.narrow(), ticks);
    else this.#detector.addG711(codec, audio.datagram, audio.payloadOffset, audio.payloadOffset + ticks);
  }

  /** Ends a press after which nothing came. Call every few hundred milliseconds. */
  judge(nowMs: number): void {
    if (nowMs - this.#heardAtMs > SILENT_AFTER_MS) this.#detector.end();
  }

  /** The party began to pause, or is not listened to any more. */
  end(): void {
    this.#detector.end();
  }
}
