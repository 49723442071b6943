import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type SynthesisEngine, SynthesizerError, type VoiceReference } from '../synthesizer.ts';
import type { ScriptWord } from '../text/script.ts';
import type { VoiceRecipe } from '../voices/voice-recipe.ts';
import type { Delivery } from './delivery.ts';
import type { InstancePool } from './instance-pool.ts';
import type { SpeechCache } from './speech-cache.ts';
import { SpokenClause } from './spoken-clause.ts';
import { spokenLength } from './spoken-length.ts';

export interface ClauseOptions {
  engine: SynthesisEngine;
  recipe: VoiceRecipe;
  words: readonly ScriptWord[];
  delivery: Delivery['engine'];
  isFirst: boolean;
  signal: AbortSignal;
}

/** Synthesises clauses: from the cache, else by an instance of the engine, and by another one if the first dies. */
export class ClauseSpeaker {
  readonly #pool: InstancePool;
  readonly #cache: SpeechCache;

  constructor({ pool, cache }: { pool: InstancePool; cache: SpeechCache }) {
    this.#pool = pool;
    this.#cache = cache;
  }

  /** Returns at once; the clause receives audio and failures. */
  speak(options: ClauseOptions): SpokenClause {
    const clause = new SpokenClause(options.words);
    this.#speak(clause, options).then(
      () => clause.end(),
      (error: unknown) => clause.fail(error),
    );
    return clause;
  }

  async #speak(clause: SpokenClause, options: ClauseOptions): Promise<void> {
    if (options.words.every(({ spoken }) => spoken.trim() === '')) return;
    const key = await keyOf(options);
    const cached = await this.#cache.get(key);
    options.signal.throwIfAborted();
    if (cached !== null) {
      clause.setRate(cached.sampleRateHz);
      clause.add(cached);
      return;
    }
    await this.#speakPiece({ words: options.words, indices: [...options.words.keys()] }, { clause, options });
    clause.end();
    const finished = clause.finished();
    // A server that fails may answer without sound. The next request asks it again.
    if (finished?.samples.some((sample) => sample !== 0)) this.#cache.put(key, finished);
  }

  async #speakPiece(
    piece: Piece,
    { clause, options }: { clause: SpokenClause; options: ClauseOptions },
  ): Promise<void> {
    const begun = clause.position;
    const halves = halvesOf(piece);
    if (halves !== null && expectedMs(piece) / options.delivery.speed > LONG_PIECE_MS) {
      for (const half of halves) await this.#speakPiece(half, { clause, options });
      return;
    }
    try {
      await this.#speakTwice(piece, { clause, options });
    } catch (error) {
      const isTooLong = error instanceof SynthesizerError && error.code === 'too_long';
      const isTaken = clause.isTakenSince(begun);
      const rest = isTooLong && isTaken ? restOf(piece, clause.cutOff(begun)) : null;
      const pieces = isTaken ? rest && [rest] : halves;
      if (!isTooLong || pieces === null) throw error;
      if (!isTaken) clause.rewind(begun);
      for (const next of pieces) await this.#speakPiece(next, { clause, options });
    }
  }

  async #speakTwice(
    piece: Piece,
    { clause, options }: { clause: SpokenClause; options: ClauseOptions },
  ): Promise<void> {
    const begun = clause.position;
    try {
      await this.#speakOnce(piece, { clause, options, begun, isFresh: false });
    } catch (error) {
      if (!(error instanceof SynthesizerError && error.retryable)) throw error;
      options.signal.throwIfAborted();
      clause.rewind(begun);
      await this.#speakOnce(piece, { clause, options, begun, isFresh: true });
    }
  }

  async #speakOnce(
    { words, indices }: Piece,
    {
      clause,
      options,
      begun,
      isFresh,
    }: { clause: SpokenClause; options: ClauseOptions; begun: { samples: number }; isFresh: boolean },
  ): Promise<void> {
    const { engine, recipe, delivery, isFirst, signal } = options;
    const lease = await this.#pool.lease({ engine, model: recipe.model, isFresh, isFirst, signal });
    const { sampleRateHz } = lease.resource;
    const startMs = (begun.samples * 1000) / sampleRateHz;
    const { engineVoice: voice, reference } = recipe;
    let broken: string | null = null;
    try {
      clause.setRate(sampleRateHz);
      for await (const { samples, marks } of lease.resource.speak({ words, voice, ...delivery, reference }, signal)) {
        clause.add({
          samples,
          marks: marks.flatMap(({ word, atMs }) =>
            indices[word] === undefined ? [] : [{ word: indices[word], atMs: startMs + atMs }],
          ),
        });
      }
      clause.settle();
    } catch (error) {
      const isRefusal = signal.aborted || (error instanceof SynthesizerError && !error.retryable);
      if (!isRefusal) broken = error instanceof Error ? error.message : String(error);
      throw error;
    } finally {
      // Cancelled clauses would otherwise queue up in the engine.
      if (broken === null) await lease.resource.idle?.();
      lease.release({ broken });
    }
  }
}

/** Some words of a clause, each with its index there. */
interface Piece {
  words: readonly ScriptWord[];
  indices: readonly number[];
}

/**
 * Engines reject long clauses only after they have started. Earlier sound may then have been played, so a word is cut.
 */
const LONG_PIECE_MS = 45_000;
const SOUND_MS = 80;

function expectedMs({ words }: Piece): number {
  return words.reduce((sum, word) => sum + spokenLength(word), 0) * SOUND_MS;
}

/** Splits a piece, even within a word: a thousand digits can be one word. Null if it cannot be split. */
function halvesOf({ words, indices }: Piece): [Piece, Piece] | null {
  if (words.length > 1) {
    const middle = words.length >> 1;
    return [
      { words: words.slice(0, middle), indices: indices.slice(0, middle) },
      { words: words.slice(middle), indices: indices.slice(middle) },
    ];
  }
  const [word] = words;
  const characters = word === undefined || word.phonemes !== null ? [] : [...word.spoken];
  if (word === undefined || characters.length < 2) return null;
  const middle = characters.length >> 1;
  const half = (spoken: string): Piece => ({ words: [{ ...word, spoken }], indices });
  return [half(characters.slice(0, middle).join('')), half(characters.slice(middle).join(''))];
}

/** The words from that one on; null if that is the whole piece. */
function restOf({ words, indices }: Piece, from: number | null): Piece | null {
  const start = from === null ? 0 : indices.indexOf(from);
  return start <= 0 ? null : { words: words.slice(start), indices: indices.slice(start) };
}

/** Hashes everything that affects the engine's output. */
async function keyOf({ engine, recipe, words, delivery }: ClauseOptions): Promise<string> {
  const { speed, pitchSemitones, pitchRange } = delivery;
  const parts = [
    [engine.name, engine.source ?? null],
    recipe.model,
    recipe.engineVoice,
    words.map(({ spoken, phonemes }) => [spoken, phonemes]),
    [speed, pitchSemitones, pitchRange].map((value) => Math.round(value * 10_000)),
    recipe.reference === null ? null : await digestOf(recipe.reference),
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** Hashes the file's content, because the recording may have been replaced. */
async function digestOf({ path, text }: VoiceReference): Promise<string> {
  const recording = await readFile(path).catch((error: unknown) => {
    throw new SynthesizerError('model', 'the recording of the voice cannot be read', { cause: error });
  });
  return createHash('sha256').update(recording).update(text).digest('hex');
}
