import type { AudioFormat } from '../../machines/utterances.ts';
import type { ListeningSession } from '../../media/listening-plane.ts';
import type { Clock } from '../clock.ts';

/** Audio may come this much ahead of its time, as it does from a file; memory is what it costs. */
const MOST_AHEAD_MS = 60_000;

/** Hands the audio of a session to whoever listens, and counts it. It is not an event of any machine. */
export class AudioIntake {
  readonly #clock: Clock;
  #ears: ListeningSession | null = null;
  #format: AudioFormat | null = null;
  #openedAtMs: number | null = null;
  #receivedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Since the session began. */
  get receivedMs(): number {
    return this.#receivedMs;
  }

  open(ears: ListeningSession, format: AudioFormat): void {
    this.#ears = ears;
    this.#format = format;
    this.#openedAtMs = this.#clock.now();
  }

  /** What comes from now on is dropped. */
  close(): void {
    this.#ears = null;
  }

  /**
   * `flooding`: it comes so fast that it could only be kept in memory, and was not taken. What comes after the end of
   * a session is dropped.
   */
  write(bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): 'taken' | 'too early' | 'flooding' {
    if (this.#openedAtMs === null) return 'too early';
    if (this.#ears === null) return 'taken';
    const receivedMs = this.#receivedMs + durationMs(bytes.length, format);
    if (receivedMs - (this.#clock.now() - this.#openedAtMs) > MOST_AHEAD_MS) return 'flooding';
    this.#receivedMs = receivedMs;
    if (!isSame(format, this.#format)) {
      this.#format = format;
      this.#ears.configure({ format });
    }
    this.#ears.write(bytes);
    return 'taken';
  }
}

function durationMs(bytes: number, { encoding, sampleRateHz, channels }: AudioFormat): number {
  const bytesPerSample = encoding === 'linear16' ? 2 : 1;
  return (bytes / (bytesPerSample * channels * sampleRateHz)) * 1000;
}

function isSame(a: AudioFormat, b: AudioFormat | null): boolean {
  return a.encoding === b?.encoding && a.sampleRateHz === b.sampleRateHz && a.channels === b.channels;
}
