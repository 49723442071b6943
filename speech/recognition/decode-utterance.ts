import { setTimeout as sleep } from 'node:timers/promises';
import { RECOGNITION_RATE_HZ, type Recognition } from '../../machines/utterances.ts';
import { raceAbort } from '../../runtime/waiting.ts';
import { type Hypothesis, type Keyword, RecognizerError } from '../recognizer.ts';
import type { Urgency } from './claims.ts';
import type { Lease, RecognizerPool } from './recognizer-pool.ts';
import type { Candidate } from './router.ts';
import type { Utterance } from './utterance.ts';

export interface DecodeOptions {
  pool: RecognizerPool;
  streamKey: number;
  isLive: boolean;
  /** Best first. */
  candidates: readonly Candidate[];
  keywords: readonly Keyword[];
  urgency: () => Urgency;
  /** Null if no hypotheses are wanted. */
  hypotheses: {
    /** Called between two chunks of audio, and whenever the utterance wakes. */
    areDue: () => boolean;
    onHypothesis: (hypothesis: Hypothesis | null) => void;
  } | null;
  /** Called with the number of newly recognised samples; for a file, of samples that reached a recognizer. */
  onTaken: (samples: number) => void;
  /** For this utterance. Aborting releases the recognizer as soon as it answers. */
  signal: AbortSignal;
}

export type Decoded =
  | { type: 'recognised'; recognition: Recognition }
  /** All suitable recognizers broke on it. */
  | { type: 'given-up' }
  /** No engine can recognise this stream. */
  | { type: 'refused'; error: RecognizerError };

/** A single recognizer may break by chance; the second one breaks because of the utterance. */
const ATTEMPTS_PER_CANDIDATE = 2;
/**
 * Limit of recognizers that were broken before the utterance. They do not count as attempts, because all processes may
 * have been killed at once.
 */
const MOST_BROKEN_BEFORE = 8;
/** Retry delay for a throttling or unavailable upstream server that names none. */
const DEFAULT_RETRY_DELAY_S = 1;
const LONGEST_RETRY_DELAY_S = 3;

/**
 * Recognises an utterance, a live one while it is spoken. If a recognizer breaks or is recalled, the utterance restarts
 * on another one from its first sample.
 * @throws the signal's reason
 */
export async function decodeUtterance(utterance: Utterance, options: DecodeOptions): Promise<Decoded> {
  let lastError: RecognizerError | null = null;
  let hadRecognizer = false;
  let isRecallable = true;
  let isAlone = false;
  for (const candidate of options.candidates) {
    let { language } = candidate;
    let brokenBefore = 0;
    for (let failures = 0; failures < ATTEMPTS_PER_CANDIDATE; ) {
      const attempt = await attemptOn(utterance, { ...options, candidate, language, isRecallable, isAlone });
      if (attempt.type === 'recalled') {
        isRecallable = false;
      } else if (attempt.type === 'failed') {
        lastError = attempt.error;
        hadRecognizer ||= attempt.hadRecognizer;
        isAlone ||= attempt.error.code === 'crashed';
        if (attempt.wasBroken && ++brokenBefore < MOST_BROKEN_BEFORE) continue;
        const delayMs = retryDelayMs(attempt.error);
        failures += delayMs === null ? ATTEMPTS_PER_CANDIDATE : 1;
        if (delayMs !== null && failures < ATTEMPTS_PER_CANDIDATE) await pause(delayMs, options.signal);
      } else if (attempt.type === 'recognised' && language === null && !isAllowed(attempt.recognition, candidate)) {
        // Speech detected as another language is most likely in the first allowed one.
        language = candidate.allowed?.[0] ?? null;
      } else return attempt;
    }
  }
  if (lastError === null) throw new TypeError('an utterance needs a candidate');
  // A recognizer that cannot start does not break because of the utterance.
  return lastError.code === 'crashed' && hadRecognizer ? { type: 'given-up' } : { type: 'refused', error: lastError };
}

export function millisecondsOf(samples: number): number {
  return samples / (RECOGNITION_RATE_HZ / 1000);
}

interface AttemptOptions extends DecodeOptions {
  candidate: Candidate;
  language: string | null;
  isRecallable: boolean;
  isAlone: boolean;
}

type Attempt =
  | Extract<Decoded, { type: 'recognised' }>
  | { type: 'recalled' }
  /** `wasBroken`: it broke before it received any of the utterance. */
  | { type: 'failed'; error: RecognizerError; hadRecognizer: boolean; wasBroken: boolean };

async function attemptOn(utterance: Utterance, options: AttemptOptions): Promise<Attempt> {
  const { pool, streamKey, candidate, language, keywords, urgency, isRecallable, isAlone, signal } = options;
  const wake = (): void => utterance.wake();
  let lease: Lease | null = null;
  let hasBegun = false;
  signal.addEventListener('abort', wake);
  try {
    await claimable(utterance, options);
    const claim = { streamKey, model: candidate, urgency, isRecallable, isAlone, onRecall: wake, signal };
    lease = await pool.claim(claim);
    await lease.work(lease.recognizer.begin({ language, keywords, isLive: options.isLive }));
    hasBegun = true;
    const attempt = await feed(utterance, lease, options);
    if (attempt.type !== 'recognised') await lease.work(lease.recognizer.cancel());
    const hasText = attempt.type === 'recognised' && attempt.recognition.text !== '';
    lease.release({ broken: null, audioMs: millisecondsOf(utterance.length), hasText });
    return attempt;
  } catch (thrown) {
    const error = signal.aborted ? new RecognizerError('cancelled', 'aborted') : asRecognizerError(thrown);
    await abandon(lease, error);
    signal.throwIfAborted();
    const hadRecognizer = lease !== null;
    return { type: 'failed', error, hadRecognizer, wasBroken: hadRecognizer && !hasBegun && error.code === 'crashed' };
  } finally {
    signal.removeEventListener('abort', wake);
  }
}

/**
 * Resolves when a recognizer should be claimed. A whole-utterance engine needs the complete utterance, and after a
 * recall the utterance waits until it is urgent. A file is read so fast that waiting for its complete utterance costs
 * nothing, while a recognizer that waited for audio would be blocked for others.
 */
async function claimable(utterance: Utterance, options: AttemptOptions): Promise<void> {
  const { candidate, isLive, isRecallable, urgency, signal, onTaken } = options;
  const { streams } = candidate.description;
  while (utterance.end === null && (!isLive || !streams || (!isRecallable && urgency() === 'spoken'))) {
    signal.throwIfAborted();
    const changed = utterance.changed();
    // Audio that no recognizer could process yet is not a backlog. A file's reader should wait, though.
    if (!streams && isLive) onTaken(utterance.take(utterance.length));
    await changed;
  }
}

async function feed(utterance: Utterance, lease: Lease, options: AttemptOptions): Promise<Attempt> {
  const { recognizer } = lease;
  const { isLive, urgency, signal, onTaken } = options;
  const hypotheses = hypothesesFor(options);
  let position = 0;
  let concluded = 0;
  // A file's reader should keep all recognizers busy, and not only run a fixed distance ahead.
  if (!isLive) onTaken(utterance.take(utterance.length));
  for (;;) {
    signal.throwIfAborted();
    if (lease.isRecalled && urgency() !== 'due') return { type: 'recalled' };
    const changed = utterance.changed();
    const samples = utterance.read(position);
    if (position > concluded && utterance.pausesAt(position)) {
      concluded = position;
      if (recognizer.pause !== undefined) await lease.work(recognizer.pause());
    } else if (samples.length > 0) {
      position += samples.length;
      await lease.work(recognizer.write(samples));
      onTaken(utterance.take(position));
    } else if (utterance.end !== null) {
      // A remote engine may be slow, so cancellation does not wait for it.
      return { type: 'recognised', recognition: await raceAbort(lease.work(recognizer.finish()), signal) };
    } else if (!hypotheses?.areDue()) {
      await changed;
    }
    if (hypotheses?.areDue()) hypotheses.onHypothesis(await lease.work(recognizer.hypothesis()));
  }
}

function hypothesesFor({ candidate, hypotheses }: AttemptOptions): DecodeOptions['hypotheses'] {
  return candidate.description.streams ? hypotheses : null;
}

/** Cancels the utterance on the recognizer; if that fails, the recognizer is broken. */
async function abandon(lease: Lease | null, error: RecognizerError): Promise<void> {
  if (lease === null) return;
  let broken = error.code === 'crashed' ? error.message : null;
  if (broken === null) {
    try {
      await lease.work(lease.recognizer.cancel());
    } catch (thrown) {
      broken = asRecognizerError(thrown).message;
    }
  }
  lease.release({ broken, audioMs: 0 });
}

/** Delay before a retry; null if a retry is useless or would take too long. */
function retryDelayMs({ code, retryable, retryAfterS }: RecognizerError): number | null {
  if (!retryable) return null;
  if (code === 'crashed') return 0;
  if (code !== 'rate_limited' && code !== 'unavailable') return null;
  const delayS = retryAfterS ?? DEFAULT_RETRY_DELAY_S;
  return delayS > LONGEST_RETRY_DELAY_S ? null : delayS * 1000;
}

async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  if (durationMs > 0) await sleep(durationMs, null, { signal });
}

function isAllowed({ language }: Recognition, { allowed }: Candidate): boolean {
  return allowed === null || allowed.includes(language);
}

/** An unknown exception is a defect of the engine. */
function asRecognizerError(error: unknown): RecognizerError {
  if (error instanceof RecognizerError) return error;
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new RecognizerError('crashed', detail, { retryable: true, cause: error });
}
