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
  /** Null when nobody wants hypotheses. */
  hypotheses: {
    /** Asked between two pieces of audio; whoever wakes the utterance is asked at once. */
    areDue: () => boolean;
    onHypothesis: (hypothesis: Hypothesis | null) => void;
  } | null;
  /** So many more samples have been recognised; of a file, have come to a recognizer. */
  onTaken: (samples: number) => void;
  /** Of this utterance. Aborting gives the recognizer back as soon as it answers. */
  signal: AbortSignal;
}

export type Decoded =
  | { type: 'recognised'; recognition: Recognition }
  /** All that could have recognised it broke on it. */
  | { type: 'given-up' }
  /** Nobody can recognise anything of this stream. */
  | { type: 'refused'; error: RecognizerError };

/** One recognizer may break by chance; the second breaks of this utterance. */
const ATTEMPTS_PER_CANDIDATE = 2;
/** Those that were broken before do not count, as their processes may have been killed all at once; up to a limit. */
const MOST_BROKEN_BEFORE = 8;
/** Of an upstream server that asks to wait, or is not there for a moment. */
const USUAL_PATIENCE_S = 1;
const MOST_PATIENCE_S = 3;

/**
 * Recognises an utterance, a live one while it goes on. When a recognizer breaks, or is recalled for somebody more urgent, the
 * utterance starts again elsewhere from its first sample.
 * @throws the signal's reason when aborted
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
        const patienceMs = patienceFor(attempt.error);
        failures += patienceMs === null ? ATTEMPTS_PER_CANDIDATE : 1;
        if (patienceMs !== null && failures < ATTEMPTS_PER_CANDIDATE) await pause(patienceMs, options.signal);
      } else if (attempt.type === 'recognised' && language === null && !isAllowed(attempt.recognition, candidate)) {
        // What it takes for another language is most likely the first of those that may be spoken.
        language = candidate.allowed?.[0] ?? null;
      } else return attempt;
    }
  }
  if (lastError === null) throw new TypeError('an utterance without anybody to recognise it');
  // What cannot even be started does not break of this utterance.
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
  /** `wasBroken`: it was so before it heard anything of the utterance. */
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
    lease.giveBack({ broken: null, audioMs: millisecondsOf(utterance.length), hasText });
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
 * Resolves when it is time to claim a recognizer. One that hears an utterance as a whole can do nothing before that is
 * whole; and who had to give one up for somebody more urgent waits until it is as urgent. A file is read so fast that
 * it is no loss to wait for the rest of an utterance, and a recognizer that waited for it could keep those from the
 * others that the reader waits for.
 */
async function claimable(utterance: Utterance, options: AttemptOptions): Promise<void> {
  const { candidate, isLive, isRecallable, urgency, signal, onTaken } = options;
  const { streams } = candidate.description;
  while (utterance.end === null && (!isLive || !streams || (!isRecallable && urgency() === 'spoken'))) {
    signal.throwIfAborted();
    const changed = utterance.changed();
    // What nobody could work on yet does not lag behind. The reader of a file is to wait, though.
    if (!streams && isLive) onTaken(utterance.take(utterance.length));
    await changed;
  }
}

async function feed(utterance: Utterance, lease: Lease, options: AttemptOptions): Promise<Attempt> {
  const { recognizer } = lease;
  const { isLive, urgency, signal, onTaken } = options;
  const hypotheses = hypothesesFor(options);
  let position = 0;
  // The reader of a file is to keep all recognizers busy, not only so far ahead of those that are.
  if (!isLive) onTaken(utterance.take(utterance.length));
  for (;;) {
    signal.throwIfAborted();
    if (lease.isRecalled && urgency() !== 'due') return { type: 'recalled' };
    const changed = utterance.changed();
    const samples = utterance.read(position);
    if (samples.length > 0) {
      position += samples.length;
      await lease.work(recognizer.write(samples));
      onTaken(utterance.take(position));
    } else if (utterance.end !== null) {
      // An engine elsewhere may take long: a cancelled utterance does not wait for it.
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

/** A recognizer that is well forgets the utterance; what cannot even do that is broken. */
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
  lease.giveBack({ broken, audioMs: 0 });
}

/** How long to wait before the same is tried again; null when it would be of no use, or take too long. */
function patienceFor({ code, retryable, retryAfterS }: RecognizerError): number | null {
  if (!retryable) return null;
  if (code === 'crashed') return 0;
  if (code !== 'rate_limited' && code !== 'unavailable') return null;
  const patienceS = retryAfterS ?? USUAL_PATIENCE_S;
  return patienceS > MOST_PATIENCE_S ? null : patienceS * 1000;
}

async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  if (durationMs > 0) await sleep(durationMs, null, { signal });
}

function isAllowed({ language }: Recognition, { allowed }: Candidate): boolean {
  return allowed === null || allowed.includes(language);
}

/** Whatever an engine throws that it does not know itself is a defect of it. */
function asRecognizerError(error: unknown): RecognizerError {
  if (error instanceof RecognizerError) return error;
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new RecognizerError('crashed', detail, { retryable: true, cause: error });
}
