import type { MessagePort } from 'node:worker_threads';
import type { ErrorCode } from '../../machines/errors.ts';
import type { RecognitionEvent, UtteranceMessage } from '../../machines/utterances.ts';
import type { Hypothesis, RecognizerError, RecognizerErrorCode } from '../recognizer.ts';
import type { RecognitionSettings } from '../speech-recognition.ts';
import { type Concluded, inStreamTime, type Outcome, UtteranceConcluder } from './conclude-utterance.ts';
import { type Decoded, type DecodeOptions, decodeUtterance } from './decode-utterance.ts';
import type { RecognizerPool } from './recognizer-pool.ts';
import type { Candidate } from './router.ts';
import type { SpeakerLabels } from './speaker-labels.ts';
import { Utterance, type UtteranceEnd } from './utterance.ts';

export interface UtteranceStreamOptions {
  streamKey: number;
  /** Closed with the stream. */
  port: MessagePort;
  pool: RecognizerPool;
  settings: RecognitionSettings;
  candidates: readonly Candidate[];
  speakers: SpeakerLabels;
  onEvent: (event: RecognitionEvent) => void;
  /** Called once, after all events. */
  onClosed: () => void;
}

/** An utterance with the settings at its start. */
export interface Entry {
  utterance: Utterance;
  settings: RecognitionSettings;
  candidates: readonly Candidate[];
  /** Aborts when the utterance is discarded or the stream closes. */
  controller: AbortController;
}

/**
 * Turns the messages of a stream's listener into one outcome per utterance, in order. Live streams and batches differ
 * in when utterances are recognised, and in how they handle delays.
 */
export abstract class UtteranceStream {
  protected readonly options: UtteranceStreamOptions;
  protected abstract readonly isLive: boolean;
  readonly #concluder: UtteranceConcluder;
  /** Consecutive utterances that an upstream server rejected. */
  #refusals = 0;
  /** Utterances without an emitted outcome. */
  readonly #entries = new Map<number, Entry>();
  #settings: RecognitionSettings;
  #candidates: readonly Candidate[];
  /** Resolves when the outcomes of all utterances so far are emitted. */
  #emitted: Promise<void> = Promise.resolve();
  #state: 'open' | 'ending' | 'closed' = 'open';

  constructor(options: UtteranceStreamOptions) {
    this.options = options;
    this.#settings = options.settings;
    this.#candidates = options.candidates;
    this.#concluder = new UtteranceConcluder(options.speakers);
    options.port.on('message', (message: UtteranceMessage) => this.#take(message));
    options.port.on('close', () => this.#losePort());
  }

  get settings(): RecognitionSettings {
    return this.#settings;
  }

  configure(settings: RecognitionSettings, candidates: readonly Candidate[]): void {
    this.#settings = settings;
    this.#candidates = candidates;
  }

  /** Idempotent. Nothing is emitted afterwards. */
  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    for (const entry of this.#entries.values()) drop(entry);
    this.#entries.clear();
    this.options.port.close();
    this.options.pool.forgetStream(this.options.streamKey);
    this.onClose();
    this.options.onClosed();
  }

  /** Recognises a new utterance; called in order. `earlier` resolves when the previous outcomes are emitted. */
  protected abstract recognise(entry: Entry, earlier: Promise<void>): Promise<Decoded>;
  /** Called with the number of samples received. */
  protected abstract receive(samples: number): void;
  /** Called with the number of samples processed or dropped. */
  protected abstract release(samples: number): void;
  protected onClose(): void {}
  /** Called when all outcomes are emitted or held. */
  protected emitHeld(): void {}

  protected emitOutcome(outcome: Outcome): void {
    this.emit(outcome);
  }

  protected decode({ utterance, candidates, settings, controller }: Entry, rest: DecodeRest): Promise<Decoded> {
    return decodeUtterance(utterance, {
      ...rest,
      pool: this.options.pool,
      streamKey: this.options.streamKey,
      candidates,
      keywords: settings.keywords,
      onTaken: (samples) => this.release(samples),
      signal: controller.signal,
    });
  }

  protected emit(event: RecognitionEvent): void {
    if (this.#state !== 'closed') this.options.onEvent(event);
  }

  protected emitHypothesis(utterance: Utterance, { text, words }: Hypothesis, lagMs: number) {
    const { utteranceId, channel } = utterance;
    const type = 'utterance.hypothesis';
    this.emit({ type, utteranceId, channel, text, words: inStreamTime(words, utterance), lagMs });
  }

  protected finish(event: RecognitionEvent): void {
    this.emit(event);
    this.close();
  }

  #take(message: UtteranceMessage): void {
    switch (message.type) {
      case 'utterance.begin':
        this.#begin(new Utterance(message));
        break;
      case 'utterance.audio':
        this.#hear(message.utteranceId, message.samples);
        break;
      case 'utterance.pause':
        this.#entries.get(message.utteranceId)?.utterance.pause();
        break;
      case 'utterance.end':
        this.#conclude(message.utteranceId, { type: 'ended', summary: message.summary, atMs: endOfSpeech(message) });
        break;
      case 'utterance.discard': {
        const { utteranceId, summary, reason } = message;
        this.#conclude(utteranceId, { type: 'discarded', summary, reason, atMs: endOfSpeech(message) });
        break;
      }
      case 'stream.end':
        this.#endInput();
        void this.#emitted.then(() => {
          this.emitHeld();
          this.finish({ type: 'recognition.ended' });
        });
    }
  }

  #hear(utteranceId: number, samples: Int16Array): void {
    const entry = this.#entries.get(utteranceId);
    if (entry === undefined) return;
    entry.utterance.append(samples);
    this.receive(samples.length);
  }

  #conclude(utteranceId: number, end: UtteranceEnd): void {
    const entry = this.#entries.get(utteranceId);
    entry?.utterance.conclude(end);
    if (entry !== undefined && end.type === 'discarded') entry.controller.abort();
    // A waiting claim may be more urgent now.
    this.options.pool.reconsider();
  }

  #begin(utterance: Utterance): void {
    const controller = new AbortController();
    const entry = { utterance, settings: this.#settings, candidates: this.#candidates, controller };
    this.#entries.set(utterance.utteranceId, entry);
    const earlier = this.#emitted;
    const decoded = this.recognise(entry, earlier);
    this.#emitted = Promise.all([this.#outcomeOf(entry, decoded), earlier])
      .then(([concluded]) => this.#emitOutcome(concluded))
      .catch((error: unknown) => this.#fail('INTERNAL', error instanceof Error ? error.message : String(error)));
  }

  /** Null if there is nothing left to emit. */
  async #outcomeOf(entry: Entry, decoding: Promise<Decoded>): Promise<Concluded | null> {
    const { utterance, settings, controller } = entry;
    const decoded = await decoding.catch((error: unknown) => {
      if (controller.signal.aborted) return null;
      throw error;
    });
    if (decoded?.type === 'refused') {
      if (!this.#mayGoOn(decoded.error)) {
        this.#refuse(decoded.error);
        return null;
      }
    } else if (decoded?.type === 'recognised') this.#refusals = 0;
    // A recognizer may give up before the end of the utterance.
    while (utterance.end === null && !controller.signal.aborted) await utterance.changed();
    if (utterance.end === null) return null;
    return {
      utterance,
      end: utterance.end,
      decoded: decoded?.type === 'refused' ? { type: 'given-up' } : decoded,
      settings,
    };
  }

  async #emitOutcome(concluded: Concluded | null): Promise<void> {
    if (concluded === null || this.#state === 'closed') return;
    const { utterance } = concluded;
    this.emitOutcome(await this.#concluder.conclude(concluded));
    this.#entries.delete(utterance.utteranceId);
    this.release(utterance.take(utterance.length));
  }

  /** A live stream tolerates a few rejections by a server; a file is retried later as a whole. */
  #mayGoOn({ code, message }: RecognizerError): boolean {
    const isPassing = code === 'rate_limited' || code === 'unavailable';
    if (!this.isLive || !isPassing || ++this.#refusals > MOST_REFUSALS) return false;
    this.emit({ type: 'recognition.impaired', code: REFUSALS[code] ?? 'INTERNAL', message });
    return true;
  }

  #refuse(error: RecognizerError): void {
    this.#fail(REFUSALS[error.code] ?? 'INTERNAL', error.message, error.retryAfterS);
  }

  #fail(code: ErrorCode, message: string, retryAfterS: number | null = null): void {
    this.finish({ type: 'recognition.failed', code, message, retryAfterS });
  }

  /** Emits outcomes of complete utterances; the unfinished one is lost. */
  #losePort(): void {
    if (this.#state !== 'open') return;
    this.#endInput();
    void this.#emitted.then(() => this.#fail('INTERNAL', 'The listener of this stream is gone.'));
  }

  #endInput(): void {
    this.#state = 'ending';
    for (const entry of this.#entries.values()) if (entry.utterance.end === null) drop(entry);
  }
}

/** A live listener reports the end at once; for a file the time is irrelevant. */
function endOfSpeech({ pauseMs }: { pauseMs: number }): number {
  return performance.now() - pauseMs;
}

function drop({ utterance, controller }: Entry): void {
  controller.abort();
  utterance.wake();
}

const MOST_REFUSALS = 2;

type DecodeRest = Pick<DecodeOptions, 'isLive' | 'urgency' | 'hypotheses'>;

/** Error codes for the stream's owner when no engine works. */
const REFUSALS: Partial<Record<RecognizerErrorCode, ErrorCode>> = {
  unsupported_language: 'unsupported_language',
  rate_limited: 'STT_UPSTREAM_RATE_LIMIT',
  unavailable: 'STT_UPSTREAM_UNAVAILABLE',
};
