import type { MessagePort } from 'node:worker_threads';
import type { RecognitionEvent } from '../../machines/utterances.ts';
import type { RecognitionSettings, RecognitionStream } from '../speech-recognition.ts';
import type { StreamModel } from './protocol.ts';

export interface HostedStreamOptions {
  utterances: MessagePort;
  model: StreamModel;
  configure: (change: Partial<RecognitionSettings>) => Promise<StreamModel>;
  onEvent: (event: RecognitionEvent) => void;
  /** Called once, also if the stream ended by itself. */
  onClosed: () => void;
  signal: AbortSignal;
}

const LAST_EVENTS: ReadonlySet<RecognitionEvent['type']> = new Set([
  'recognition.ended',
  'recognition.overloaded',
  'recognition.failed',
]);

/** The owner's handle of a stream in the speech thread. */
export class HostedStream implements RecognitionStream {
  readonly utterances: MessagePort;
  readonly #options: HostedStreamOptions;
  #model: StreamModel;
  #isClosed = false;

  constructor(options: HostedStreamOptions) {
    this.#options = options;
    this.utterances = options.utterances;
    this.#model = options.model;
    options.signal.addEventListener('abort', this.close);
    if (options.signal.aborted) this.close();
  }

  get model(): string {
    return this.#model.model;
  }

  get boostsKeywords(): boolean {
    return this.#model.boostsKeywords;
  }

  async configure(change: Partial<RecognitionSettings>): Promise<void> {
    this.#model = await this.#options.configure(change);
  }

  readonly close = (): void => {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#options.signal.removeEventListener('abort', this.close);
    this.#options.onClosed();
  };

  deliver(event: RecognitionEvent): void {
    if (this.#isClosed) return;
    if (LAST_EVENTS.has(event.type)) this.close();
    this.#options.onEvent(event);
  }
}
