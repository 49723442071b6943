import type { RecognitionStream } from '../speech/speech-recognition.ts';

type Configured = Pick<RecognitionStream, 'configure'>;

/** Interval at which watchers receive partial transcripts. */
const HYPOTHESIS_EVERY_MS = 500;

/** Switches partial transcripts of a call's recognisers on and off. They cost nothing while the call is not watched. */
export class CallHypotheses {
  readonly #onFailure: (error: unknown) => void;
  readonly #streams = new Set<Configured>();
  #isOn = false;

  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Controls a recogniser until the signal aborts. */
  add(stream: Configured, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#streams.add(stream);
    signal.addEventListener('abort', () => this.#streams.delete(stream), { once: true });
    if (this.#isOn) this.#configure(stream);
  }

  /** Applies from each leg's next utterance. Idempotent. */
  set(isOn: boolean): void {
    if (isOn === this.#isOn) return;
    this.#isOn = isOn;
    for (const stream of this.#streams) this.#configure(stream);
  }

  #configure(stream: Configured): void {
    stream.configure({ hypothesisEveryMs: this.#isOn ? HYPOTHESIS_EVERY_MS : null }).catch(this.#onFailure);
  }
}
