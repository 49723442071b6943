import { raceAbort } from '../../runtime/waiting.ts';
import type { SpeakRequest, SpokenMark, SpokenPart } from '../speech-synthesis.ts';
import { type SpokenWord, type SynthesisEngine, SynthesizerError } from '../synthesizer.ts';
import { NEUTRAL_PROSODY, type ScriptClause } from '../text/script.ts';
import type { VoiceRecipe } from '../voices/voice-recipe.ts';
import type { ClauseSpeaker } from './clause-speaker.ts';
import { type Delivery, deliveryOf } from './delivery.ts';
import { joinBytes } from './output/join-bytes.ts';
import type { OpenSpeechEncoder, SpeechEncoder } from './output/speech-encoder.ts';
import { pauseAfterMs } from './pauses.ts';
import { SpeechLine } from './speech-line.ts';
import type { SpokenClause } from './spoken-clause.ts';

export interface SpeechStreamOptions {
  request: SpeakRequest;
  /** @throws SynthesizerError `unknown_voice` if the engine is not available */
  engineOf: (recipe: VoiceRecipe) => SynthesisEngine;
  speaker: ClauseSpeaker;
  openEncoder: OpenSpeechEncoder;
}

/** A chunk that reaches either size is returned, even if more is ready. */
const ENOUGH_BYTES = 12_000;
const ENOUGH_MS = 1000;
/** A shorter chunk waits for more, unless it is the first. */
const WORTHWHILE_MS = 200;
/** Leading silence is held back up to this length, because a text without any sound should fail instead. */
const MOST_SILENT_MS = 10_000;
/** Encoded at a time: at most 4 kB of 16-bit samples. */
const SLICE_MS = 40;

/** A requested clause and its delivery. */
interface RequestedClause {
  spoken: SpokenClause;
  delivery: Delivery;
}

/**
 * Synthesises a text on demand. Encodes nothing before it is requested, and starts a clause only when the previous one
 * is being consumed: a slow consumer blocks no engine and needs little memory.
 */
export class SpeechStream {
  readonly #options: SpeechStreamOptions;
  readonly #closed = new AbortController();
  readonly #opening: Promise<SpeechEncoder>;
  #encoder: SpeechEncoder | null = null;
  #line: SpeechLine | null = null;
  /** Requested clauses that are not finished, in order; the first is being consumed. */
  readonly #requested: RequestedClause[] = [];
  /** Index of the clause being consumed. */
  #index = 0;
  #clauseStartMs: number | null = null;
  #pauseMs = 0;
  #encodedSamples = 0;
  #returnedMs = 0;
  #bytes: Uint8Array<ArrayBuffer>[] = [];
  #byteCount = 0;
  #hasReturned = false;
  /** Whether the engine has produced any sound. */
  #isAudible = false;
  /** Known but not returned yet. */
  #words: SpokenWord[] = [];
  #marks: SpokenMark[] = [];
  #isOver = false;
  /** Index of the last clause with words. */
  readonly #lastWords: number;

  /** Requests the first clause at once. @throws SynthesizerError `unknown_voice` */
  constructor(options: SpeechStreamOptions) {
    this.#options = options;
    for (const recipe of options.request.voices ?? []) options.engineOf(recipe);
    this.#lastWords = options.request.script.clauses.findLastIndex(({ words }) => words.length > 0);
    this.#opening = options.openEncoder(options.request.format);
    this.#opening.catch(() => {});
    this.#request(1);
  }

  /** One call at a time. Null at the end. @throws SynthesizerError */
  async next(): Promise<SpokenPart | null> {
    this.#closed.signal.throwIfAborted();
    if (this.#isOver) return null;
    const encoder = await this.#opened();
    for (;;) {
      const isFirst = !this.#hasReturned;
      const heldMs = this.#encodedMs(encoder) - this.#returnedMs;
      const isEnough = this.#byteCount >= ENOUGH_BYTES || heldMs >= ENOUGH_MS;
      const isReady = this.#byteCount > 0 && (this.#isAudible || heldMs >= MOST_SILENT_MS);
      if (isReady && (isFirst || isEnough)) return this.#part(encoder);
      const step = this.#step(encoder);
      if (step === 'over') return this.#lastPart(encoder);
      if (step === 'moved') continue;
      if (isReady && heldMs >= WORTHWHILE_MS) return this.#part(encoder);
      await this.#changed();
    }
  }

  /** Idempotent. A pending `next` rejects with the reason. */
  close(reason: unknown): void {
    this.#closed.abort(reason);
    this.#isOver = true;
    this.#opening.then(
      (encoder) => encoder.close(),
      () => {},
    );
  }

  async #opened(): Promise<SpeechEncoder> {
    if (this.#encoder !== null) return this.#encoder;
    this.#encoder = await this.#opening;
    this.#closed.signal.throwIfAborted();
    this.#line = new SpeechLine(this.#encoder.inputRateHz);
    return this.#encoder;
  }

  /** Encodes a little more, if available. */
  #step(encoder: SpeechEncoder): 'moved' | 'waiting' | 'over' {
    const line = this.#line!;
    if (this.#pauseMs > 0) {
      this.#pause(encoder);
      return 'moved';
    }
    const [current] = this.#requested;
    if (current === undefined) return 'over';
    const { spoken, delivery } = current;
    const samples = spoken.take(sliceSamples(spoken.sampleRateHz));
    if (samples !== null) {
      this.#clauseStartMs ??= line.positionMs;
      this.#isAudible ||= samples.some((sample) => sample !== 0);
      // The next clause is synthesised while this one is consumed.
      this.#request(2);
      const settings = { sampleRateHz: spoken.sampleRateHz, effects: delivery.effects };
      this.#encode(line.process(samples, settings), encoder);
      return 'moved';
    }
    if (!spoken.isEnded) return 'waiting';
    this.#finish(current);
    return 'moved';
  }

  /** Requests clauses until `most` are requested and unfinished. */
  #request(most: number): void {
    const { request, engineOf, speaker } = this.#options;
    const { script, style } = request;
    while (this.#requested.length < most) {
      const clause = script.clauses[this.#index + this.#requested.length];
      if (clause === undefined) return;
      const recipe = this.#recipeOf(clause);
      const engine = engineOf(recipe);
      const { controlsPitch } = engine;
      const delivery = deliveryOf({ recipe, style, prosody: clause.prosody, controlsPitch });
      const { signal } = this.#closed;
      const spoken = speaker.speak({
        ...{ engine, recipe, signal },
        words: clause.words,
        delivery: delivery.engine,
        isFirst: this.#index + this.#requested.length === 0,
      });
      this.#requested.push({ spoken, delivery });
    }
  }

  #finish({ spoken, delivery }: RequestedClause): void {
    const startMs = this.#clauseStartMs ?? this.#line!.positionMs;
    const words = spoken.words().map(({ word, startMs: from, endMs: to }) => {
      return { word, startMs: startMs + from, endMs: startMs + to };
    });
    this.#words.push(...words);
    this.#clauseStartMs = null;
    const clause = this.#options.request.script.clauses[this.#index]!;
    for (const { name, word } of clause.marks) {
      this.#marks.push({ name, atMs: words[word]?.startMs ?? words.at(-1)?.endMs ?? startMs });
    }
    const isLast = this.#index >= this.#lastWords;
    const usualMs = isLast ? 0 : pauseAfterMs(clause) / delivery.engine.speed;
    this.#pauseMs = Math.max(usualMs - spoken.silenceAtEndMs, clause.pauseAfterMs);
    this.#requested.shift();
    this.#index += 1;
    this.#request(1);
  }

  #recipeOf({ voice }: ScriptClause): VoiceRecipe {
    const { recipe, voices = [] } = this.#options.request;
    return (voice === null ? undefined : voices[voice]) ?? recipe;
  }

  /** Silence passes through the same effects, so that the sound before it can decay. */
  #pause(encoder: SpeechEncoder): void {
    const line = this.#line!;
    const settings = line.settings ?? {
      sampleRateHz: encoder.inputRateHz,
      effects: deliveryOf({ ...this.#options.request, prosody: NEUTRAL_PROSODY, controlsPitch: true }).effects,
    };
    const wanted = Math.round((this.#pauseMs * settings.sampleRateHz) / 1000);
    const samples = new Int16Array(Math.min(sliceSamples(settings.sampleRateHz), wanted));
    this.#pauseMs = wanted > samples.length ? this.#pauseMs - (samples.length * 1000) / settings.sampleRateHz : 0;
    if (samples.length > 0) this.#encode(line.process(samples, settings), encoder);
  }

  #encode(blocks: readonly Int16Array[], encoder: SpeechEncoder): void {
    for (const samples of blocks) {
      this.#encodedSamples += samples.length;
      this.#keep(encoder.encode(samples));
    }
  }

  #keep(bytes: Uint8Array<ArrayBuffer>): void {
    if (bytes.length === 0) return;
    this.#bytes.push(bytes);
    this.#byteCount += bytes.length;
  }

  #encodedMs({ inputRateHz }: SpeechEncoder): number {
    return (this.#encodedSamples * 1000) / inputRateHz;
  }

  #lastPart(encoder: SpeechEncoder): SpokenPart | null {
    if (!this.#isAudible) throw new SynthesizerError('unsayable', 'the voice has no sound for any of it');
    this.#isOver = true;
    this.#encode(this.#line!.flush(), encoder);
    this.#keep(encoder.finish());
    encoder.close();
    const durationMs = this.#encodedMs(encoder);
    // Effects and resampling round by less than a sample.
    const inside = ({ word, startMs, endMs }: SpokenWord): SpokenWord => ({
      word,
      startMs: Math.min(startMs, durationMs),
      endMs: Math.min(endMs, durationMs),
    });
    this.#words = this.#words.map(inside);
    this.#marks = this.#marks.map(({ name, atMs }) => ({ name, atMs: Math.min(atMs, durationMs) }));
    const part = this.#part(encoder);
    return part.audio.length > 0 || part.words.length > 0 || part.marks !== undefined ? part : null;
  }

  /** Returns the output so far, in a transferable buffer of its own. */
  #part(encoder: SpeechEncoder): SpokenPart {
    const audio = joinBytes(this.#bytes);
    this.#bytes = [];
    this.#byteCount = 0;
    this.#hasReturned = true;
    this.#returnedMs = this.#encodedMs(encoder);
    const open = this.#words.findIndex(({ endMs }) => endMs > this.#returnedMs);
    const words = this.#words.splice(0, open < 0 ? this.#words.length : open);
    const ahead = this.#marks.findIndex(({ atMs }) => atMs > this.#returnedMs);
    const marks = this.#marks.splice(0, ahead < 0 ? this.#marks.length : ahead);
    return { audio, words, ...(marks.length > 0 && { marks }), durationMs: this.#returnedMs };
  }

  async #changed(): Promise<void> {
    await raceAbort(this.#requested[0]!.spoken.changed, this.#closed.signal);
  }
}

function sliceSamples(sampleRateHz: number): number {
  return Math.max(1, Math.round((sampleRateHz * SLICE_MS) / 1000));
}
