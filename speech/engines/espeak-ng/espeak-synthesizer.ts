import { EngineCallError, EngineProcess } from '../../engine-process/engine-process.ts';
import { type Clause, type SpokenClause, type Synthesizer, SynthesizerError } from '../../synthesizer.ts';
import { SpokenAnswer } from './espeak-calls.ts';

/** Starts a process with eSpeak NG in it. @throws SynthesizerError `crashed` */
export async function startEspeak({ signal }: { signal?: AbortSignal } = {}): Promise<Synthesizer> {
  const entry = new URL('./espeak-child.ts', import.meta.url);
  try {
    return new EspeakSynthesizer(await EngineProcess.start({ entry, argument: null, ...(signal && { signal }) }));
  } catch (error) {
    throw toSynthesizerError(error);
  }
}

class EspeakSynthesizer implements Synthesizer {
  readonly #process: EngineProcess;

  constructor(process: EngineProcess) {
    this.#process = process;
  }

  async speak({ text, voice, wordsPerMinute, format: { encoding, sampleRateHz } }: Clause): Promise<SpokenClause> {
    try {
      const argument = { text, voice, wordsPerMinute, format: { encoding, sampleRateHz } };
      const { value, bytes } = await this.#process.callForBytes('speak', argument);
      if (!SpokenAnswer.Check(value)) throw this.#process.breakOff('eSpeak NG answered what it must not');
      const parts = [bytes];
      for (let missing = value.bytes - bytes.byteLength; missing > 0; ) {
        const { bytes: more } = await this.#process.callForBytes('more', null);
        if (more.byteLength === 0) throw this.#process.breakOff('eSpeak NG kept back what it said');
        parts.push(more);
        missing -= more.byteLength;
      }
      return { audio: Buffer.concat(parts), durationMs: value.durationMs, words: value.words };
    } catch (error) {
      throw toSynthesizerError(error);
    }
  }

  close(): Promise<void> {
    return this.#process.close();
  }
}

function toSynthesizerError(error: unknown): SynthesizerError {
  const code = error instanceof EngineCallError ? error.code : null;
  const message = error instanceof Error ? error.message : String(error);
  const isRefusal = code === 'unknown_voice' || code === 'too_long';
  return new SynthesizerError(isRefusal ? code : 'crashed', message, { cause: error });
}
