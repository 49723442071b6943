import type { AvailableSynthesizers } from '../engines/available-synthesizers.ts';
import type { AvailableVoice, SpeakRequest, SpokenPart, SynthesisEngineStatus } from '../speech-synthesis.ts';
import { type SynthesisEngine, SynthesizerError } from '../synthesizer.ts';
import type { VoiceRecipe } from '../voices/voice-recipe.ts';
import { ClauseSpeaker } from './clause-speaker.ts';
import { InstancePool } from './instance-pool.ts';
import { openSpeechEncoder } from './output/open-speech-encoder.ts';
import type { SynthesisDescribed } from './protocol.ts';
import { SpeechCache, type SpeechCacheOptions } from './speech-cache.ts';
import { SpeechStream } from './speech-stream.ts';

export interface SynthesisDeskOptions {
  available: AvailableSynthesizers;
  processes: number;
  cache: SpeechCacheOptions;
  onBroken: (instance: { model: string; detail: string }) => void;
}

/** State of the synthesis thread: engines, instances, cache, and streams in progress. */
export class SynthesisDesk {
  readonly #available: AvailableSynthesizers;
  readonly #pool: InstancePool;
  readonly #cache: SpeechCache;
  readonly #speaker: ClauseSpeaker;
  readonly #streams = new Map<number, SpeechStream>();

  constructor({ available, processes, cache, onBroken }: SynthesisDeskOptions) {
    this.#available = available;
    this.#pool = new InstancePool({ processes, onBroken });
    this.#cache = new SpeechCache(cache);
    this.#speaker = new ClauseSpeaker({ pool: this.#pool, cache: this.#cache });
  }

  /** @throws SynthesizerError `unknown_voice` if the engine is not available */
  open(streamKey: number, request: SpeakRequest): void {
    const stream = new SpeechStream({
      request,
      engineOf: (recipe) => this.#engineOf(recipe),
      speaker: this.#speaker,
      openEncoder: openSpeechEncoder,
    });
    this.#streams.set(streamKey, stream);
  }

  #engineOf({ engine }: VoiceRecipe): SynthesisEngine {
    const found = this.#available.engines.find(({ name }) => name === engine);
    if (found !== undefined) return found;
    throw new SynthesizerError('unknown_voice', `the engine ${engine} of the voice is not there`);
  }

  /** @throws SynthesizerError */
  async next(streamKey: number): Promise<SpokenPart | null> {
    const stream = this.#streams.get(streamKey);
    if (stream === undefined) throw new SynthesizerError('crashed', CLOSED);
    return await stream.next();
  }

  close(streamKey: number): void {
    this.#streams.get(streamKey)?.close(new SynthesizerError('crashed', CLOSED));
    this.#streams.delete(streamKey);
  }

  async describe(): Promise<SynthesisDescribed> {
    const described = await Promise.all(this.#available.engines.map(describeEngine));
    const missing = this.#available.missing.map((engine) => ({ ...engine, voices: 0 }));
    return {
      voices: described.flatMap(({ voices }) => voices),
      engines: [...described.map(({ status }) => status), ...missing],
    };
  }

  async drain(): Promise<void> {
    for (const streamKey of [...this.#streams.keys()]) this.close(streamKey);
    await this.#pool.close();
    // The pool may have finished more clauses.
    await this.#cache.settled();
  }
}

const CLOSED = 'the stream of speech was closed';

async function describeEngine(
  engine: SynthesisEngine,
): Promise<{ voices: AvailableVoice[]; status: SynthesisEngineStatus }> {
  try {
    const voices = (await engine.voices()).map((voice) => ({ ...voice, engine: engine.name }));
    const problem = await engine.problem();
    return { voices, status: { engine: engine.name, voices: voices.length, problem } };
  } catch (error) {
    // The other engines still work.
    const problem = error instanceof Error ? error.message : String(error);
    return { voices: [], status: { engine: engine.name, voices: 0, problem } };
  }
}
