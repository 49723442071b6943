import type { AudioFormat } from '../../machines/utterances.ts';
import type { ListeningSession } from '../../media/listening-plane.ts';
import type { Clock } from '../../runtime/clock.ts';

/** Audio may come this much ahead of its time, as it does from a file; memory is what it costs. */
const MOST_AHEAD_MS = 60_000;

/** So much may wait to be heard in all, when the listeners of this machine are behind as well. */
const MOST_UNHEARD_MS = 90_000;
/** Listeners tell what they have heard in steps; less than this behind is not behind. */
const TOLD_LATE_MS = 500;

/** Hands the audio of a session to whoever listens, and counts it. It is not an event of any machine. */
export class AudioIntake {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #ears: ListeningSession | null = null;
  #format: AudioFormat | null = null;
  #isOpened = false;
  #receivedMs = 0;
  #heardMs = 0;
  /** How far the audio was ahead of its time, and when. */
  #aheadMs = 0;
  #asOfMs = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Since the session began. */
  get receivedMs(): number {
    return this.#receivedMs;
  }

  /** How much of the audio waits to be heard; 0 while the listener keeps up. */
  get behindMs(): number {
    return Math.max(0, this.#receivedMs - this.#heardMs - TOLD_LATE_MS);
  }

  /** So much has been heard since the session began. */
  heard(heardMs: number): void {
    this.#heardMs = heardMs;
  }

  open(ears: ListeningSession, format: AudioFormat): void {
    this.#ears = ears;
    this.#format = format;
    this.#isOpened = true;
    this.#asOfMs = this.#clock.monotonicMs();
  }

  /** What comes from now on is dropped. */
  close(): void {
    this.#ears = null;
  }

  /**
   * `flooding`: it comes so fast, or is heard so slowly, that it could only be kept in memory, and was not taken. What
   * comes after the end of a session is dropped.
   */
  write(bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): 'taken' | 'too early' | 'flooding' {
    if (!this.#isOpened) return 'too early';
    if (this.#ears === null) return 'taken';
    const lengthMs = durationMs(bytes.length, format);
    const aheadMs = this.#stillAheadMs() + lengthMs;
    if (aheadMs > MOST_AHEAD_MS || this.behindMs > MOST_UNHEARD_MS) return 'flooding';
    this.#aheadMs = aheadMs;
    this.#receivedMs += lengthMs;
    if (!isSame(format, this.#format)) {
      this.#format = format;
      this.#ears.configure({ format });
    }
    this.#ears.write(bytes);
    return 'taken';
  }

  /** Ends the open utterance in the audio that was written until now. False before the session has started. */
  endUtterance(): boolean {
    if (!this.#isOpened) return false;
    this.#ears?.endUtterance();
    return true;
  }

  /** An hour of silence earns no credit: the client may not send an hour of audio at once after it. */
  #stillAheadMs(): number {
    const nowMs = this.#clock.monotonicMs();
    this.#aheadMs = Math.max(0, this.#aheadMs - (nowMs - this.#asOfMs));
    this.#asOfMs = nowMs;
    return this.#aheadMs;
  }
}

function durationMs(bytes: number, { encoding, sampleRateHz, channels }: AudioFormat): number {
  const bytesPerSample = encoding === 'linear16' ? 2 : 1;
  return (bytes / (bytesPerSample * channels * sampleRateHz)) * 1000;
}

function isSame(a: AudioFormat, b: AudioFormat | null): boolean {
  return a.encoding === b?.encoding && a.sampleRateHz === b.sampleRateHz && a.channels === b.channels;
}
