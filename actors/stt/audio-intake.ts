import type { AudioFormat } from '../../machines/utterances.ts';
import type { ListeningSession } from '../../media/listening-plane.ts';
import type { Clock } from '../../runtime/clock.ts';

/** Audio from a file may arrive this much ahead of real time; the limit bounds memory. */
const MOST_AHEAD_MS = 60_000;

/** Audio that may wait for the listener in total, if this machine is behind as well. */
const MAX_BACKLOG_MS = 90_000;
/** Listeners report progress in steps, so smaller delays are ignored. */
const REPORT_STEP_MS = 500;

/** Passes a session's audio to its listener and counts it. Audio never becomes a machine event. */
export class AudioIntake {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #listener: ListeningSession | null = null;
  #format: AudioFormat | null = null;
  #isOpened = false;
  #receivedMs = 0;
  #processedMs = 0;
  /** Lead of the audio over real time, and when it was computed. */
  #aheadMs = 0;
  #asOfMs = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Audio received since the session began. */
  get receivedMs(): number {
    return this.#receivedMs;
  }

  /** Audio that waits for the listener; 0 while it keeps up. */
  get behindMs(): number {
    return Math.max(0, this.#receivedMs - this.#processedMs - REPORT_STEP_MS);
  }

  /** Reports the total audio that the listener has processed. */
  analysed(processedMs: number): void {
    this.#processedMs = processedMs;
  }

  open(listener: ListeningSession, format: AudioFormat): void {
    this.#listener = listener;
    this.#format = format;
    this.#isOpened = true;
    this.#asOfMs = this.#clock.monotonicMs();
  }

  /** Drops all later audio. */
  close(): void {
    this.#listener = null;
  }

  /**
   * Passes audio on. `flooding`: not accepted, because it arrives too fast or is processed too slowly and would fill
   * memory. Audio after the end of a session is dropped.
   */
  write(bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): 'taken' | 'too early' | 'flooding' {
    if (!this.#isOpened) return 'too early';
    if (this.#listener === null) return 'taken';
    const lengthMs = durationMs(bytes.length, format);
    const aheadMs = this.#stillAheadMs() + lengthMs;
    if (aheadMs > MOST_AHEAD_MS || this.behindMs > MAX_BACKLOG_MS) return 'flooding';
    this.#aheadMs = aheadMs;
    this.#receivedMs += lengthMs;
    if (!isSame(format, this.#format)) {
      this.#format = format;
      this.#listener.configure({ format });
    }
    this.#listener.write(bytes);
    return 'taken';
  }

  /** Ends the open utterance at this point of the audio. False before the session has started. */
  endUtterance(): boolean {
    if (!this.#isOpened) return false;
    this.#listener?.endUtterance();
    return true;
  }

  /** Silence earns no credit: after an hour of it, the client may not send an hour of audio at once. */
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
