import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { RecognitionEvent } from '../../machines/utterances.ts';
import type { ListeningPlane, ListeningSession, ListenOptions, StreamAnalysis } from '../../media/listening-plane.ts';
import type { OpenRecognitionOptions, RecognitionStream, SpeechRecognition } from '../../speech/speech-recognition.ts';

/** Listening without audio: records its input and whether it was finished. */
export class FakeListening implements ListeningPlane {
  readonly sessions: { options: ListenOptions; finished: number }[] = [];
  isWarm = false;
  /** Runs before a session opens; may throw. */
  onOpen: () => void = () => undefined;

  warmUp(): void {
    this.isWarm = true;
  }

  async open(options: ListenOptions): Promise<ListeningSession> {
    this.onOpen();
    const session = { options, finished: 0 };
    this.sessions.push(session);
    return {
      write() {},
      configure() {},
      endUtterance() {},
      async finish(): Promise<StreamAnalysis> {
        session.finished += 1;
        return { durationMs: 0, speechMs: 0, snrDb: null };
      },
      async close() {},
    };
  }

  listenToFile(): never {
    throw new Error('calls are no files');
  }

  capacity() {
    return { sessions: this.sessions.length, workers: 1 };
  }

  async dump(): Promise<unknown> {
    return {};
  }

  async close(): Promise<void> {}
}

/** Recognition that emits the test's events. */
export class FakeRecognition implements SpeechRecognition {
  readonly isRunning = true;
  readonly streams: { options: OpenRecognitionOptions; utterances: MessagePort; changes: object[] }[] = [];
  /** Runs before a stream opens; may throw. */
  onOpen: () => void = () => undefined;

  async open(options: OpenRecognitionOptions): Promise<RecognitionStream> {
    this.onOpen();
    const { port1: utterances, port2 } = new MessageChannel();
    options.signal.addEventListener('abort', () => port2.close(), { once: true });
    const changes: object[] = [];
    this.streams.push({ options, utterances, changes });
    return {
      utterances,
      model: 'fake/en',
      boostsKeywords: true,
      configure: async (change) => void changes.push(change),
      close: () => port2.close(),
    };
  }

  /** Emits an event of the recogniser of a leg of the only call. */
  emit(leg: string, event: RecognitionEvent): void {
    const stream = this.streams.find(({ options }) => options.streamId.endsWith(`/${leg}`));
    if (!stream) throw new Error(`no stream recognises what ${leg} says`);
    if (!stream.options.signal.aborted) stream.options.onEvent(event);
  }

  languages() {
    return [];
  }

  loadPerStream = 0;

  liveLoad(more: number) {
    return (this.streams.length + more) * this.loadPerStream;
  }

  async engines() {
    return [];
  }

  async close(): Promise<void> {}
}

/** An utterance of one second, whose number determines its start. */
export function recognised(utteranceId: number, text: string): RecognitionEvent {
  const startMs = utteranceId * 1_000;
  const words = text
    .split(' ')
    .map((word) => ({ word, startMs, endMs: startMs + 1_000, confidence: 0.9, speaker: null, original: null }));
  return {
    type: 'utterance.recognised',
    utteranceId,
    summary: { channel: 0, startMs, endMs: startMs + 1_000, speechMs: 900, snrDb: 20 },
    recognition: { text, words, language: 'en', languageProbability: null, confidence: 0.9, model: 'fake/en' },
    isDiarized: false,
    lagMs: 100,
  };
}
