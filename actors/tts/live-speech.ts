import { TandemError } from '../../machines/errors.ts';
import { seconds } from '../../machines/utterances.ts';
import { isSsml } from '../../speech/text/ssml.ts';
import { PARAGRAPH_MARK } from '../../speech/text/written-words.ts';
import type { LiveSpeech, LiveSpeechEncoding, LiveSpeechRequest, TtsDesk } from './tts-desk.ts';

/** Waiting text, in code units. */
const MOST_WAITING = 5_000;

export interface LiveSpeechOptions extends LiveSpeechRequest {
  speak: TtsDesk['speak'];
  /** Resolves the voice and its text reader. Without a voice id, the text decides on the voice. */
  readerFor(request: { workspaceId: string; voiceId: string | null; text: string }): Promise<TextReader>;
}

export interface TextReader {
  voiceId: string;
  /** Returns clauses to synthesise one by one, in order. */
  clausesOf(text: string): ReadClause[];
}

export interface ReadClause {
  /** Position in the text after its last character, in code units. White space after it belongs to the next clause. */
  end: number;
  /** False: it has no letter or digit. */
  isSayable: boolean;
  /** The clause ends a sentence, so later text does not belong to it. */
  endsSentence: boolean;
  /** Silence before the next clause, at normal speed. */
  pauseAfterMs: number;
}

/** @throws TandemError `VOICE_NOT_FOUND`, `VOICE_NOT_READY` for a given voice id */
export async function openLiveSpeech(options: LiveSpeechOptions): Promise<LiveSpeech> {
  const { workspaceId, voiceId, readerFor } = options;
  return new SentenceSpeech(options, voiceId === null ? null : await readerFor({ workspaceId, voiceId, text: '' }));
}

type Job = { type: 'text'; text: string } | { type: 'flush'; sequenceId: number };

/** Synthesises and charges complete sentences, one after the other. */
class SentenceSpeech implements LiveSpeech {
  readonly ended: Promise<void>;
  readonly #options: LiveSpeechOptions;
  readonly #end = Promise.withResolvers<void>();
  #reader: TextReader | null;
  #jobs: Job[] = [];
  /** Received text of the incomplete sentence. */
  #open = '';
  #sequenceId = 0;
  #isWorking = false;
  #isFinishing = false;
  /** Aborts when the current sentence is no longer wanted. */
  #listening = new AbortController();
  #positionMs = 0;
  /** Pause before the next text. */
  #pauseMs = 0;

  constructor(options: LiveSpeechOptions, reader: TextReader | null) {
    this.#options = options;
    this.#reader = reader;
    this.ended = this.#end.promise;
  }

  say(text: string): void {
    const waiting = this.#jobs.reduce(
      (sum, job) => sum + (job.type === 'text' ? job.text.length : 0),
      this.#open.length,
    );
    if (waiting + text.length > MOST_WAITING) {
      throw new TandemError(
        'VALIDATION_FAILED',
        `More than ${MOST_WAITING} characters wait to be spoken. Send Flush, or wait for the audio.`,
      );
    }
    this.#add({ type: 'text', text });
  }

  flush(): void {
    this.#add({ type: 'flush', sequenceId: this.#sequenceId++ });
  }

  clear(): void {
    this.#jobs = [];
    this.#open = '';
    this.#pauseMs = 0;
    this.#listening.abort('cleared');
    this.#listening = new AbortController();
    this.#options.listener.onCleared(this.#sequenceId++);
  }

  finish(): void {
    if (this.#isFinishing) return;
    this.#isFinishing = true;
    this.flush();
  }

  end(reason: unknown): void {
    this.#jobs = [];
    this.#listening.abort(reason);
    this.#end.resolve();
  }

  #add(job: Job): void {
    this.#jobs.push(job);
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#work().then(
      () => {
        if (this.#isFinishing && !this.#isWorking) this.#end.resolve();
      },
      (error: unknown) => this.#end.reject(error),
    );
  }

  async #work(): Promise<void> {
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      const { signal } = this.#listening;
      try {
        if (job.type === 'text') await this.#take(job.text, signal);
        else await this.#flush(job.sequenceId, signal);
      } catch (error) {
        // After `clear` and `end` the error does not matter.
        if (!signal.aborted) throw error;
      }
    }
    this.#isWorking = false;
  }

  /** Synthesises the complete sentences. */
  async #take(text: string, signal: AbortSignal): Promise<void> {
    this.#open += text;
    // White space, signs and digits belong to no language.
    if (this.#reader === null && !LETTER.test(this.#open)) return;
    if (SSML_MAY_FOLLOW.test(this.#open)) return;
    const reader = await this.#readerOf(this.#open);
    if (signal.aborted) return;
    const clauses = reader.clausesOf(this.#open);
    const last = clauses.at(-1);
    if (last === undefined) return;
    // A word is complete only when white space follows.
    const isWordOpen = !/\s$/.test(this.#open);
    const street = STREET_MAY_FOLLOW.exec(this.#open)?.index ?? Number.POSITIVE_INFINITY;
    const isComplete = last.endsSentence && !isWordOpen && street >= last.end;
    const whole = clauses.slice(0, -1).filter(({ end }) => end <= street);
    const complete = isComplete ? clauses : clausesBeforeUnit(clausesBeforeNumber(whole, this.#open), this.#open);
    const end = complete.at(-1)?.end ?? 0;
    const finished = this.#open.slice(0, end);
    this.#open = isComplete ? '' : this.#open.slice(end);
    await this.#speak(finished, { reader, clauses: complete, signal });
  }

  async #flush(sequenceId: number, signal: AbortSignal): Promise<void> {
    const text = this.#open;
    this.#open = '';
    if (text.trim() !== '') {
      const reader = await this.#readerOf(text);
      await this.#speak(text, { reader, clauses: reader.clausesOf(text), signal });
    }
    if (!signal.aborted) this.#options.listener.onFlushed(sequenceId);
  }

  async #readerOf(text: string): Promise<TextReader> {
    const { readerFor, workspaceId, voiceId } = this.#options;
    if (isSsml(text)) throw new TandemError('INVALID_SSML', 'SSML cannot be streamed. Send plain text.');
    const reader = this.#reader ?? (await readerFor({ workspaceId, voiceId, text }));
    if (LETTER.test(text)) this.#reader = reader;
    return reader;
  }

  async #speak(
    read: string,
    { reader, clauses, signal }: { reader: TextReader; clauses: readonly ReadClause[]; signal: AbortSignal },
  ): Promise<void> {
    if (!clauses.some(({ isSayable }) => isSayable)) return;
    const { speak, listener, workspaceId, userId, apiKeyId, style, format } = this.#options;
    const text = read.trim();
    const request = { workspaceId, userId, apiKeyId, text, voiceId: reader.voiceId, style, format };
    const spoken = await speak(request, signal);
    listener.onCharge(spoken);
    await this.#pause(signal);
    const startMs = this.#positionMs;
    for await (const { audio, words, durationMs } of spoken.parts) {
      this.#positionMs = startMs + durationMs;
      if (audio.byteLength > 0) await listener.onAudio(audio);
      signal.throwIfAborted();
      const timed = words.map(({ word, startMs: from, endMs: to }) => ({
        ...{ word, start: seconds(startMs + from), end: seconds(startMs + to) },
      }));
      if (timed.length > 0) listener.onWords(timed);
    }
    this.#pauseMs = clauses.at(-1)!.pauseAfterMs / style.speed;
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { listener, format } = this.#options;
    const samples = Math.round((this.#pauseMs * format.sampleRateHz) / 1000);
    if (samples === 0) return;
    this.#positionMs += (samples * 1000) / format.sampleRateHz;
    const { bytesPerSample, silence } = ENCODINGS[format.encoding];
    await listener.onAudio(new Uint8Array(samples * bytesPerSample).fill(silence));
    signal.throwIfAborted();
  }
}

/** Without the clauses from the one that ends inside a number at the end of the text: later groups change its reading. */
function clausesBeforeNumber(clauses: readonly ReadClause[], text: string): readonly ReadClause[] {
  const within = clauses.findIndex(({ end }) => {
    if (!ENDS_WITH_GROUP.test(text.slice(Math.max(0, end - MOST_MARKS), end))) return false;
    const groups = text.slice(end).trim().split(/\s+/);
    return groups.length < MOST_GROUPS && groups.every((group) => IS_GROUP.test(group));
  });
  return within < 0 ? clauses : clauses.slice(0, within);
}

/**
 * Without the clauses at the end that are cut within a sentence, unless the cut is between letters, at a pause before
 * letters, or before an item of a list or a heading: numbers and abbreviations are read together with the words around
 * them, as in "code: 482-913" and "Tue, 12/1". A long text is cut anywhere.
 */
function clausesBeforeUnit(clauses: readonly ReadClause[], text: string): readonly ReadClause[] {
  if (text.length > MOST_HELD) return clauses;
  const last = clauses.findLastIndex(({ end, endsSentence, pauseAfterMs }) => {
    const endsWithLetter = ENDS_WITH_LETTER.test(text.slice(0, end));
    const rest = text.slice(end);
    // The spoken form of "OTP" has full stops, too.
    if (endsSentence && (!endsWithLetter || EMPTY_LINE.test(rest))) return true;
    if (LINE_BREAK.test(rest) && PARAGRAPH_MARK.test(rest.trimStart())) return true;
    return (pauseAfterMs > 0 || endsWithLetter) && BEGINS_WITH_LETTER.test(rest);
  });
  return clauses.slice(0, last + 1);
}

/** Twice the longest clause. */
const MOST_HELD = 500;
const ENDS_WITH_LETTER = /\p{L}\p{M}*$/u;
const LINE_BREAK = /^[^\S\n]*\n/;
const EMPTY_LINE = /^[^\S\n]*\n[^\S\n]*\n/;
const BEGINS_WITH_LETTER = /^\s*\p{L}/u;

/**
 * "350 W." is read as watts unless the name of a street follows, which has capitals and up to three words. The word
 * after it decides whether the sentence goes on.
 */
const STREET_MAY_FOLLOW = /(?<!\S)[\d,.-]*\d\s+W\.\s+(?:[\p{Lu}\d]\S*\s+){0,3}\S*$/u;

/** Nothing but XML comments and the beginning of a tag. */
const SSML_MAY_FOLLOW = /^\s*<!--(?!.*-->\s*(?!<!--|<\S{0,4}$)\S)/s;

/** Groups of a telephone number. Letters end it, also in scripts without spaces. */
const MOST_GROUPS = 6;
const IS_GROUP = /^[\p{P}+]*\p{Nd}[\p{Nd}\p{P}+]*$/u;
/** A digit and the signs after it. Other punctuation after a group ends the number. */
const MOST_MARKS = 4;
const ENDS_WITH_GROUP = /\p{Nd}[)\]/-]*$/u;
const LETTER = /\p{L}/u;

/** Encoded zero sample (ITU-T G.711). */
const ENCODINGS = {
  LINEAR16: { bytesPerSample: 2, silence: 0 },
  MULAW: { bytesPerSample: 1, silence: 0xff },
  ALAW: { bytesPerSample: 1, silence: 0xd5 },
} as const satisfies Record<LiveSpeechEncoding, unknown>;
