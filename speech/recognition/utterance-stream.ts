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
  /** Nothing follows. */
  onClosed: () => void;
}

/** An utterance with what held when it began. */
export interface Entry {
  utterance: Utterance;
  settings: RecognitionSettings;
  candidates: readonly Candidate[];
  /** Aborted when it is discarded, and with the stream. */
  controller: AbortController;
}

/**
 * The utterances of one stream, from the messages of its listener to one outcome for each, in order. Live streams and
 * batches differ in when utterances are recognised, and in what happens when that takes long.
 */
export abstract class UtteranceStream {
  protected readonly options: UtteranceStreamOptions;
  protected abstract readonly isLive: boolean;
  readonly #concluder: UtteranceConcluder;
  /** Utterances in a row that an upstream server refused. */
  #refusals = 0;
  /** Those of which the outcome was not told yet. */
  readonly #entries = new Map<number, Entry>();
  #settings: RecognitionSettings;
  #candidates: readonly Candidate[];
  /** Resolves when all utterances so far are told. */
  #told: Promise<void> = Promise.resolve();
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

  /** Idempotent. Nothing is told after this. */
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

  /** Recognises an utterance that begins; called in the order of utterances. `earlier` are told by then. */
  protected abstract recognise(entry: Entry, earlier: Promise<void>): Promise<Decoded>;
  /** So many samples came in. */
  protected abstract receive(samples: number): void;
  /** So many samples are done with. */
  protected abstract release(samples: number): void;
  protected onClose(): void {}
  /** All were told or held. */
  protected tellHeld(): void {}

  protected tellOutcome(outcome: Outcome): void {
    this.tell(outcome);
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

  protected tell(event: RecognitionEvent): void {
    if (this.#state !== 'closed') this.options.onEvent(event);
  }

  protected tellHypothesis(utterance: Utterance, { text, words }: Hypothesis, lagMs: number) {
    const { utteranceId, channel } = utterance;
    const type = 'utterance.hypothesis';
    this.tell({ type, utteranceId, channel, text, words: inStreamTime(words, utterance), lagMs });
  }

  /** The last that is told. */
  protected finish(event: RecognitionEvent): void {
    this.tell(event);
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
        void this.#told.then(() => {
          this.tellHeld();
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
    // What waits for a recognizer waits more urgently now.
    this.options.pool.reconsider();
  }

  #begin(utterance: Utterance): void {
    const controller = new AbortController();
    const entry = { utterance, settings: this.#settings, candidates: this.#candidates, controller };
    this.#entries.set(utterance.utteranceId, entry);
    const earlier = this.#told;
    const decoded = this.recognise(entry, earlier);
    this.#told = Promise.all([this.#outcomeOf(entry, decoded), earlier])
      .then(([concluded]) => this.#tellOutcome(concluded))
      .catch((error: unknown) => this.#fail('INTERNAL', error instanceof Error ? error.message : String(error)));
  }

  /** Null when there is nothing to tell any more. */
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
    // A recognizer may have given up before the utterance was over.
    while (utterance.end === null && !controller.signal.aborted) await utterance.changed();
    if (utterance.end === null) return null;
    return {
      utterance,
      end: utterance.end,
      decoded: decoded?.type === 'refused' ? { type: 'given-up' } : decoded,
      settings,
    };
  }

  async #tellOutcome(concluded: Concluded | null): Promise<void> {
    if (concluded === null || this.#state === 'closed') return;
    const { utterance } = concluded;
    this.tellOutcome(await this.#concluder.conclude(concluded));
    this.#entries.delete(utterance.utteranceId);
    this.release(utterance.take(utterance.length));
  }

  /** A live stream outlives a server that refuses an utterance or two; a file as a whole is tried again later. */
  #mayGoOn({ code, message }: RecognizerError): boolean {
    const isPassing = code === 'rate_limited' || code === 'unavailable';
    if (!this.isLive || !isPassing || ++this.#refusals > MOST_REFUSALS) return false;
    this.tell({ type: 'recognition.impaired', code: REFUSALS[code] ?? 'INTERNAL', message });
    return true;
  }

  #refuse(error: RecognizerError): void {
    this.#fail(REFUSALS[error.code] ?? 'INTERNAL', error.message, error.retryAfterS);
  }

  #fail(code: ErrorCode, message: string, retryAfterS: number | null = null): void {
    this.finish({ type: 'recognition.failed', code, message, retryAfterS });
  }

  /** What the listener posted before it went is told; what it had not finished cannot be. */
  #losePort(): void {
    if (this.#state !== 'open') return;
    this.#endInput();
    void this.#told.then(() => this.#fail('INTERNAL', 'The listener of this stream is gone.'));
  }

  #endInput(): void {
    this.#state = 'ending';
    for (const entry of this.#entries.values()) if (entry.utterance.end === null) drop(entry);
  }
}

/** A live listener is told of it at once; of a file, time means nothing. */
function endOfSpeech({ pauseMs }: { pauseMs: number }): number {
  return performance.now() - pauseMs;
}

function drop({ utterance, controller }: Entry): void {
  controller.abort();
  utterance.wake();
}

const MOST_REFUSALS = 2;

type DecodeRest = Pick<DecodeOptions, 'isLive' | 'urgency' | 'hypotheses'>;

/** What the owner of a stream may be told of why no engine does it. */
const REFUSALS: Partial<Record<RecognizerErrorCode, ErrorCode>> = {
  unsupported_language: 'unsupported_language',
  rate_limited: 'STT_UPSTREAM_RATE_LIMIT',
  unavailable: 'STT_UPSTREAM_UNAVAILABLE',
};
