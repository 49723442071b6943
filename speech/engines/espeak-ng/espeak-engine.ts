import { EngineCallError, EngineProcess } from '../../engine-process/engine-process.ts';
import { samplesOf } from '../../engine-process/samples-of.ts';
import {
  type Clause,
  type EngineVoice,
  type SpokenBlock,
  type SynthesisEngine,
  type Synthesizer,
  SynthesizerError,
} from '../../synthesizer.ts';
import { audioChunkCheck, SAMPLE_RATE_HZ } from './espeak-calls.ts';
import { ESPEAK_VOICES } from './espeak-voices.ts';

const MODEL = 'espeak-ng';
export const ESPEAK_CHILD = new URL('./espeak-child.ts', import.meta.url);
/**
 * The engine is JavaScript. While a thread of V8 compiles its large functions, they would run in the interpreter, which
 * takes longer than to wait for the compiled code: bench/tts-start.ts.
 */
export const ESPEAK_FLAGS = ['--no-concurrent-recompilation'] as const;

/**
 * Creates the eSpeak NG engine with all its languages. Besides the listed voices it accepts their variants, such as
 * `en-us+f3`, which sound like other people.
 */
export function createEspeakEngine({ processes }: { processes: number }): SynthesisEngine {
  const voices: readonly EngineVoice[] = ESPEAK_VOICES.map(([name, language]) => ({
    name,
    model: MODEL,
    language,
    gender: 'male',
    clones: false,
  }));
  return {
    name: 'espeak-ng',
    controlsPitch: true,
    maxInstances: processes,
    voices: async () => voices,
    problem: async () => null,
    start: ({ signal }) => EspeakSynthesizer.start(signal),
  };
}

class EspeakSynthesizer implements Synthesizer {
  readonly sampleRateHz = SAMPLE_RATE_HZ;
  readonly #process: EngineProcess;

  static async start(signal: AbortSignal): Promise<Synthesizer> {
    try {
      const options = { entry: ESPEAK_CHILD, nodeFlags: ESPEAK_FLAGS, argument: null, signal };
      return new EspeakSynthesizer(await EngineProcess.start(options));
    } catch (error) {
      signal.throwIfAborted();
      throw toSynthesizerError(error);
    }
  }

  private constructor(process: EngineProcess) {
    this.#process = process;
  }

  async *speak(clause: Clause, signal: AbortSignal): AsyncGenerator<SpokenBlock, void> {
    const { voice, speed, pitchSemitones, pitchRange } = clause;
    const words = clause.words.map(({ spoken, phonemes }) => ({ spoken, phonemes }));
    const parts = this.#process.stream('speak', { words, voice, speed, pitchSemitones, pitchRange });
    signal.throwIfAborted();
    let isSilent = true;
    try {
      for await (const { value, bytes } of parts) {
        signal.throwIfAborted();
        if (!audioChunkCheck.matches(value) || value.marks.some(({ word }) => word >= words.length)) {
          throw this.#process.breakOff('eSpeak NG answered what it must not');
        }
        isSilent &&= bytes.byteLength < 2;
        yield { samples: samplesOf(bytes), marks: value.marks };
      }
    } catch (error) {
      signal.throwIfAborted();
      throw toSynthesizerError(error);
    }
    if (isSilent) yield { samples: new Int16Array(SILENT_SAMPLES), marks: [] };
  }

  idle(): Promise<void> {
    return this.#process.idle();
  }

  close(): Promise<void> {
    return this.#process.close();
  }
}

/** For a clause without speakable text. */
const SILENT_SAMPLES = SAMPLE_RATE_HZ / 100;

function toSynthesizerError(error: unknown): SynthesizerError {
  const code = error instanceof EngineCallError ? error.code : null;
  const message = error instanceof Error ? error.message : String(error);
  const isRefusal = code === 'unknown_voice' || code === 'too_long';
  return new SynthesizerError(isRefusal ? code : 'crashed', message, { cause: error });
}
