import { once } from 'node:events';
import type { MessagePort } from 'node:worker_threads';
import type { SamplesTaken, UtteranceMessage } from '../../machines/utterances.ts';

/** Audio of a file that may be queued for the recogniser: 60 s. */
const MOST_UNTAKEN_SAMPLES = 60 * 16_000;

/** Posts utterances and counts how much of them the recogniser took. */
export class UtterancePort {
  readonly #port: MessagePort;
  readonly #samplesOfOpen = new Map<number, number>();
  #posted = 0;
  #ended = 0;
  #taken = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', (message: SamplesTaken) => {
      this.#taken += message.samples;
    });
  }

  get untakenSamples(): number {
    return this.#posted - this.#taken;
  }

  post(message: UtteranceMessage): void {
    if (message.type === 'utterance.begin') this.#samplesOfOpen.set(message.utteranceId, 0);
    if (message.type === 'utterance.end' || message.type === 'utterance.discard') {
      this.#ended += this.#samplesOfOpen.get(message.utteranceId) ?? 0;
      this.#samplesOfOpen.delete(message.utteranceId);
    }
    if (message.type !== 'utterance.audio') {
      this.#port.postMessage(message);
      return;
    }
    const { utteranceId, samples } = message;
    this.#posted += samples.length;
    this.#samplesOfOpen.set(utteranceId, (this.#samplesOfOpen.get(utteranceId) ?? 0) + samples.length);
    this.#port.postMessage(message, [samples.buffer]);
  }

  /** Earlier messages still arrive. Idempotent. */
  close(): void {
    this.#port.close();
  }

  onClosed(listener: () => void): void {
    this.#port.once('close', listener);
  }

  /**
   * Resolves when more may be posted. A recogniser may take only complete utterances, so there is room until a complete
   * one waits, however long. @throws the signal's `AbortError`
   */
  async room(signal: AbortSignal): Promise<void> {
    while (this.untakenSamples > MOST_UNTAKEN_SAMPLES && this.#ended > this.#taken) {
      await once(this.#port, 'message', { signal });
    }
  }
}
