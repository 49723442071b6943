import { once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type {
  RecognitionEvent,
  SamplesTaken,
  UtteranceMessage,
  UtteranceSummary,
} from '../../../machines/utterances.ts';
import { RecognitionDesk, type RecognitionDeskOptions } from '../../../speech/recognition/recognition-desk.ts';
import type { RecognitionEngine } from '../../../speech/recognizer.ts';
import type { RecognitionSettings } from '../../../speech/speech-recognition.ts';
import { Arrivals } from '../arrivals.ts';
import { spoken } from '../fake-engine.ts';

export class Speaker {
  readonly events = new Arrivals<RecognitionEvent>();
  readonly credits = new Arrivals<SamplesTaken>();
  readonly closed: Promise<void>;
  readonly #port: MessagePort;
  #utterances = 0;
  #atMs = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    const closed = Promise.withResolvers<void>();
    this.closed = closed.promise;
    port.on('message', (message: SamplesTaken) => this.credits.push(message));
    port.on('close', () => closed.resolve());
  }

  say(words: readonly number[], durationMs = 400): number {
    const utteranceId = this.begin();
    this.go(utteranceId, words, durationMs);
    this.end(utteranceId);
    return utteranceId;
  }

  begin(channel = 0): number {
    const utteranceId = this.#utterances++;
    this.post({ type: 'utterance.begin', utteranceId, channel, startMs: this.#atMs });
    return utteranceId;
  }

  go(utteranceId: number, words: readonly number[], durationMs = 400): void {
    this.#atMs += durationMs;
    this.post({ type: 'utterance.audio', utteranceId, samples: spoken(words, durationMs) });
  }

  pause(utteranceId: number): void {
    this.post({ type: 'utterance.pause', utteranceId });
  }

  end(utteranceId: number, summary: Partial<UtteranceSummary> = {}): void {
    this.post({ type: 'utterance.end', utteranceId, summary: this.#summary(summary), pauseMs: 0 });
  }

  discard(utteranceId: number): void {
    const reason = 'speech_end_too_short';
    this.post({ type: 'utterance.discard', utteranceId, summary: this.#summary({}), reason, pauseMs: 0 });
  }

  hangUp(): void {
    this.post({ type: 'stream.end' });
  }

  vanish(): void {
    this.#port.close();
  }

  post(message: UtteranceMessage): void {
    this.#port.postMessage(message);
  }

  /** Text, or the reason for its absence, by utterance. */
  get outcomes(): [utteranceId: number, outcome: string][] {
    return this.events.all.flatMap((event) => {
      if (event.type === 'utterance.recognised') return [[event.utteranceId, event.recognition.text]];
      return event.type === 'utterance.unusable' ? [[event.utteranceId, event.reason]] : [];
    });
  }

  get kinds(): RecognitionEvent['type'][] {
    return this.events.all.map(({ type }) => type);
  }

  #summary(summary: Partial<UtteranceSummary>): UtteranceSummary {
    return { channel: 0, startMs: 0, endMs: this.#atMs, speechMs: this.#atMs, snrDb: 30, ...summary };
  }
}

/** Streams on a recognition desk in this thread. */
export class DeskFixture {
  readonly desk: RecognitionDesk;
  readonly broken: { model: string; detail: string }[] = [];
  readonly #speakers = new Map<number, Speaker>();

  constructor(engines: readonly RecognitionEngine[], options: Partial<RecognitionDeskOptions> = {}) {
    this.desk = new RecognitionDesk({
      available: { engines, missing: [], embedder: null },
      preferred: 'auto',
      processes: 2,
      onEvent: (streamKey, event) => this.#speakers.get(streamKey)?.events.push(event),
      onBroken: (instance) => this.broken.push(instance),
      ...options,
    });
  }

  async open(
    mode: 'live' | 'batch',
    settings: Partial<RecognitionSettings> = {},
    { isPromised = false } = {},
  ): Promise<Speaker & { key: number }> {
    const { port1, port2 } = new MessageChannel();
    const key = this.#speakers.size;
    const speaker = Object.assign(new Speaker(port1), { key });
    this.#speakers.set(key, speaker);
    const defaults = { languages: null, keywords: [], hypothesisEveryMs: null, diarization: null };
    await this.desk.open({
      streamKey: key,
      mode,
      isPromised,
      settings: { ...defaults, ...settings },
      utterances: port2,
    });
    return speaker;
  }

  /** Resolves when the desk has received everything sent so far. */
  async received(): Promise<void> {
    // Ports of one thread are emptied in the same turn of its loop.
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(null);
    await once(port2, 'message');
    port1.close();
    await new Promise(setImmediate);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.desk.drain();
  }
}
