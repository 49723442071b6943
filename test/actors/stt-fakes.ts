import { MessageChannel } from 'node:worker_threads';
import type { RecognisedWord, RecognitionEvent, UtteranceSummary } from '../../machines/utterances.ts';
import type {
  ListeningPlane,
  ListeningSession,
  ListeningSettings,
  ListenOptions,
} from '../../media/listening-plane.ts';
import type {
  OpenRecognitionOptions,
  RecognitionSettings,
  SpeechRecognition,
} from '../../speech/speech-recognition.ts';

/** Recognition without engines: streams record their input and emit the test's events. */
export class FakeRecognition implements SpeechRecognition {
  readonly isRunning = true;
  readonly streams: FakeRecognitionStream[] = [];
  /** Applies to streams opened later. */
  boostsKeywords = true;
  /** Runs before a stream opens or changes; may throw or wait. */
  onSettings: (settings: Partial<RecognitionSettings>) => void | Promise<void> = () => undefined;

  async open(options: OpenRecognitionOptions): Promise<FakeRecognitionStream> {
    await this.onSettings(options);
    options.signal.throwIfAborted();
    const stream = new FakeRecognitionStream(options, (change) => this.onSettings(change));
    stream.boostsKeywords = this.boostsKeywords;
    this.streams.push(stream);
    return stream;
  }

  get stream(): FakeRecognitionStream {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error('no stream was opened');
    return stream;
  }

  get live(): FakeRecognitionStream[] {
    return this.streams.filter(({ isClosed }) => !isClosed);
  }

  languages() {
    return [
      { code: 'en', engines: ['pocketsphinx' as const] },
      { code: 'hi', engines: ['openai' as const] },
    ];
  }

  liveLoad() {
    return 0;
  }

  async engines() {
    return [];
  }

  async close() {}
}

class FakeRecognitionStream {
  readonly options: OpenRecognitionOptions;
  readonly changes: Partial<RecognitionSettings>[] = [];
  readonly utterances = new MessageChannel().port1;
  readonly model = 'fake/en';
  boostsKeywords = true;
  isClosed = false;
  readonly #onSettings: (change: Partial<RecognitionSettings>) => void | Promise<void>;

  constructor(
    options: OpenRecognitionOptions,
    onSettings: (change: Partial<RecognitionSettings>) => void | Promise<void>,
  ) {
    this.options = options;
    this.#onSettings = onSettings;
    options.signal.addEventListener('abort', () => this.close(), { once: true });
  }

  async configure(change: Partial<RecognitionSettings>): Promise<void> {
    await this.#onSettings(change);
    this.changes.push(change);
  }

  close(): void {
    this.isClosed = true;
    this.utterances.close();
  }

  emit(event: RecognitionEvent): void {
    if (!this.isClosed) this.options.onEvent(event);
  }

  /** Emits a complete utterance of the given duration. */
  recognise(utteranceId: number, text: string, { durationMs = 2_000 } = {}): void {
    this.emit({
      type: 'utterance.recognised',
      utteranceId,
      summary: { ...SUMMARY, startMs: 1_000, endMs: 1_000 + durationMs },
      recognition: {
        text,
        words: wordsOf(text),
        language: 'en',
        languageProbability: null,
        confidence: 0.9,
        model: this.model,
      },
      isDiarized: this.options.diarization !== null,
      lagMs: 100,
    });
  }
}

/** Listening without threads. */
export class FakeListening implements ListeningPlane {
  readonly sessions: FakeListeningSession[] = [];
  onOpen: () => void | Promise<void> = () => undefined;
  /** Runs when all audio is processed. */
  onFinish: (session: FakeListeningSession) => void = () => undefined;

  warmUp(): void {}

  async open(options: ListenOptions): Promise<FakeListeningSession> {
    await this.onOpen();
    options.signal.throwIfAborted();
    const session = new FakeListeningSession(options, () => this.onFinish(session));
    this.sessions.push(session);
    return session;
  }

  get session(): FakeListeningSession {
    const session = this.sessions.at(-1);
    if (session === undefined) throw new Error('no listener was opened');
    return session;
  }

  get live(): FakeListeningSession[] {
    return this.sessions.filter(({ isClosed }) => !isClosed);
  }

  listenToFile(): never {
    throw new Error('live sessions listen to no file');
  }

  capacity() {
    return { sessions: this.live.length, workers: 1 };
  }

  async dump() {
    return {};
  }

  async close() {}
}

export class FakeListeningSession implements ListeningSession {
  readonly options: ListenOptions;
  readonly changes: Partial<ListeningSettings>[] = [];
  readonly written: Uint8Array[] = [];
  /** Bytes written before each end of an utterance. */
  readonly endedAt: number[] = [];
  isFinished = false;
  isClosed = false;
  readonly #onFinish: () => void;

  constructor(options: ListenOptions, onFinish: () => void) {
    this.options = options;
    this.#onFinish = onFinish;
    options.signal.addEventListener('abort', () => void this.close(), { once: true });
  }

  get bytes(): Buffer {
    return Buffer.concat(this.written);
  }

  write(bytes: Uint8Array<ArrayBuffer>): void {
    // Transfers the buffer as to another thread, so the writer loses it.
    this.written.push(structuredClone(bytes, { transfer: [bytes.buffer] }));
  }

  configure(change: Partial<ListeningSettings>): void {
    this.changes.push(change);
  }

  endUtterance(): void {
    this.endedAt.push(this.bytes.length);
  }

  async finish() {
    this.isFinished = true;
    queueMicrotask(this.#onFinish);
    return { durationMs: 4_000, speechMs: 2_000, snrDb: 21.04 };
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

/** Both fakes, connected so that the end of listening ends recognition. */
export function createFakeSpeech(): { recognition: FakeRecognition; listening: FakeListening } {
  const recognition = new FakeRecognition();
  const listening = new FakeListening();
  listening.onFinish = ({ options }) => {
    const stream = recognition.streams.find(({ utterances }) => utterances === options.utterances);
    stream?.emit({ type: 'recognition.ended' });
  };
  return { recognition, listening };
}

export const SUMMARY: UtteranceSummary = { channel: 0, startMs: 1_000, endMs: 3_000, speechMs: 1_800, snrDb: 21 };

function wordsOf(text: string): RecognisedWord[] {
  return text.split(' ').map((word, index) => ({
    word,
    startMs: 1_000 + index * 400,
    endMs: 1_300 + index * 400,
    confidence: 0.9,
    speaker: null,
    original: null,
  }));
}
