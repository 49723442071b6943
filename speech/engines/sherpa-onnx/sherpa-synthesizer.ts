import type { JsonValue } from '../../../runtime/frames.ts';
import { ProcessError } from '../../../runtime/supervised-process.ts';
import { raceAbort } from '../../../runtime/waiting.ts';
import { EngineCallError, EngineProcess } from '../../engine-process/engine-process.ts';
import { samplesOf } from '../../engine-process/samples-of.ts';
import {
  type Clause,
  type SpokenBlock,
  type Synthesizer,
  SynthesizerError,
  type SynthesizerErrorCode,
} from '../../synthesizer.ts';
import { clauseText, isSpeakable, silentBlock } from '../clause-text.ts';
import { lastWords } from './last-words.ts';
import { LoadedAnswer } from './synthesis-calls.ts';

export interface SherpaSynthesizerOptions {
  /** Shown to people. */
  model: string;
  config: object;
  /** Maps voice names to speaker numbers. */
  speakers: ReadonlyMap<string, number>;
  /** Whether the voices need a reference recording. */
  clones: boolean;
  signal: AbortSignal;
}

/** A synthesis model in a process of its own. */
export class SherpaSynthesizer implements Synthesizer {
  readonly sampleRateHz: number;
  readonly #options: SherpaSynthesizerOptions;
  readonly #process: EngineProcess;

  /** @throws SynthesizerError `model` if it cannot be loaded, the signal's reason */
  static async start(options: SherpaSynthesizerOptions): Promise<SherpaSynthesizer> {
    const { model, config, signal } = options;
    let process: EngineProcess | null = null;
    try {
      process = await EngineProcess.start({
        entry: new URL('./synthesis-child.ts', import.meta.url),
        // Plain JSON data: only strings, numbers and lists.
        argument: config as unknown as JsonValue,
        loadWithinMs: LOAD_WITHIN_MS,
        answerWithinMs: SENTENCE_WITHIN_MS,
        signal,
      });
      const loaded = await process.call('describe', null);
      if (LoadedAnswer.matches(loaded)) return new SherpaSynthesizer(options, { process, ...loaded });
    } catch (error) {
      signal.throwIfAborted();
      // The library exits its process when it cannot read a model. A retry would fail the same way.
      const said = lastWords(error);
      const message = `${model}: sherpa-onnx cannot load it${said === null ? '' : ` (${said})`}`;
      throw new SynthesizerError('model', message, { cause: error });
    }
    await process.close();
    throw new SynthesizerError('model', `${model}: its sample rate is not supported`);
  }

  private constructor(
    options: SherpaSynthesizerOptions,
    { process, sampleRateHz }: { process: EngineProcess; sampleRateHz: number },
  ) {
    this.#options = options;
    this.#process = process;
    this.sampleRateHz = sampleRateHz;
  }

  async *speak(clause: Clause, signal: AbortSignal): AsyncGenerator<SpokenBlock, void> {
    signal.throwIfAborted();
    const { model, speakers, clones } = this.#options;
    const sid = speakers.get(clause.voice);
    if (sid === undefined) throw new SynthesizerError('unknown_voice', `${model} has no voice ${clause.voice}`);
    if (clones && clause.reference === null) {
      throw new SynthesizerError('unknown_voice', `${clause.voice} needs a reference recording`);
    }
    const text = clauseText(clause);
    let isSilent = true;
    if (isSpeakable(text)) {
      const reference = clones ? { path: clause.reference!.path, text: clauseTextOf(clause.reference!.text) } : null;
      const speed = Math.min(FASTEST, Math.max(SLOWEST, clause.speed));
      const parts = this.#process.stream('speak', { text, sid, speed, reference });
      try {
        for await (const { bytes } of endedBy(parts, signal)) {
          if (bytes.byteLength < 2) continue;
          isSilent = false;
          yield { samples: samplesOf(bytes), marks: [] };
        }
      } catch (error) {
        signal.throwIfAborted();
        throw this.#toSynthesizerError(error);
      }
    }
    if (isSilent) yield silentBlock(this.sampleRateHz);
  }

  idle(): Promise<void> {
    return this.#process.idle();
  }

  close(): Promise<void> {
    return this.#process.close();
  }

  #toSynthesizerError(error: unknown): SynthesizerError {
    if (error instanceof EngineCallError && isKnown(error.code)) return new SynthesizerError(error.code, error.message);
    // After an unexpected exception the library's state is undefined.
    if (error instanceof EngineCallError) this.#process.breakOff('the model failed', error);
    const said = error instanceof ProcessError ? error.message : 'the model failed';
    return new SynthesizerError('crashed', `${this.#options.model}: ${said}`, { cause: error });
  }
}

/** A gigabyte from a slow disk. */
const LOAD_WITHIN_MS = 180_000;
/** Per sentence. With unknown tokens the library was observed to hang forever. */
const SENTENCE_WITHIN_MS = 60_000;
const SLOWEST = 0.2;
const FASTEST = 5;

/** Does not wait for the engine after an abort: it continues until the end of its clause. */
async function* endedBy<T>(parts: AsyncGenerator<T, void>, signal: AbortSignal): AsyncGenerator<T, void> {
  try {
    for (;;) {
      const next = await raceAbort(parts.next(), signal);
      if (next.done) return;
      yield next.value;
      signal.throwIfAborted();
    }
  } finally {
    parts.return().catch(() => {});
  }
}

function clauseTextOf(text: string): string {
  return clauseText({ words: [{ written: text, spoken: text, phonemes: null }] });
}

const KNOWN_CODES: ReadonlySet<string | null> = new Set<SynthesizerErrorCode>(['model', 'too_long']);

function isKnown(code: string | null): code is SynthesizerErrorCode {
  return KNOWN_CODES.has(code);
}
