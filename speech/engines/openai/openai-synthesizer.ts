import { Resampler } from '../../../media/dsp/resample.ts';
import { roundedSamples } from '../../../media/dsp/rounded-samples.ts';
import { type Clause, type SpokenBlock, type Synthesizer, SynthesizerError } from '../../synthesizer.ts';
import { clauseText, isSpeakable, silentBlock } from '../clause-text.ts';
import { AudioAnswer } from './audio-answer.ts';
import type { SpeechServer } from './speech-server.ts';
import type { SpeechVoices } from './speech-voices.ts';

/** Sends each clause to a server and streams the samples of the response. */
export class OpenAiSynthesizer implements Synthesizer {
  readonly sampleRateHz = UPSTREAM_RATE_HZ;
  readonly #server: SpeechServer;
  readonly #voices: SpeechVoices;
  readonly #closing = new AbortController();

  constructor(server: SpeechServer, voices: SpeechVoices, signal: AbortSignal) {
    this.#server = server;
    this.#voices = voices;
    signal.addEventListener('abort', () => this.#close(), { signal: this.#closing.signal });
    if (signal.aborted) this.#close();
  }

  async *speak(clause: Clause, signal: AbortSignal): AsyncGenerator<SpokenBlock, void> {
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    ended.throwIfAborted();
    const voices = await this.#voices.list();
    ended.throwIfAborted();
    if (!voices.some(({ name }) => name === clause.voice)) {
      throw new SynthesizerError('unknown_voice', `the speech server has no voice ${clause.voice}`);
    }
    const text = clauseText(clause);
    if (text.length > MOST_CHARACTERS) throw new SynthesizerError('too_long', 'a clause that speech servers refuse');
    if (!isSpeakable(text)) {
      yield silentBlock(this.sampleRateHz);
      return;
    }
    const speed = Math.min(FASTEST, Math.max(SLOWEST, clause.speed));
    try {
      let hasSpoken = false;
      for await (const samples of this.#samplesOf({ text, voice: clause.voice, speed }, ended)) {
        hasSpoken = true;
        yield { samples, marks: [] };
        ended.throwIfAborted();
      }
      if (!hasSpoken) yield silentBlock(this.sampleRateHz);
    } catch (error) {
      ended.throwIfAborted();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#close();
  }

  #close(): void {
    this.#closing.abort(new SynthesizerError('crashed', 'the synthesizer was closed'));
  }

  async *#samplesOf(request: Parameters<SpeechServer['speak']>[0], signal: AbortSignal) {
    const { contentType, chunks } = await this.#server.speak(request, signal);
    try {
      const answer = new AudioAnswer({ contentType, usualRateHz: UPSTREAM_RATE_HZ });
      let converter: RateConverter | null = null;
      let received = 0;
      for await (const chunk of chunks) {
        const samples = answer.push(chunk);
        received += samples.length;
        if (received > LONGEST_CLAUSE_S * answer.sampleRateHz) {
          throw new SynthesizerError('too_long', 'the speech server speaks on and on');
        }
        if (samples.length === 0) continue;
        converter ??= new RateConverter(answer.sampleRateHz);
        const converted = converter.convert(samples);
        if (converted.length > 0) yield converted;
      }
      const last = answer.end();
      converter ??= new RateConverter(answer.sampleRateHz);
      for (const samples of [converter.convert(last), converter.finish()]) if (samples.length > 0) yield samples;
    } finally {
      await chunks.return();
    }
  }
}

/** Rate of bare PCM from OpenAI and most servers. */
const UPSTREAM_RATE_HZ = 24_000;
/** OpenAI's limits. */
const MOST_CHARACTERS = 4096;
const SLOWEST = 0.25;
const FASTEST = 4;
/** At the slowest pace. */
const LONGEST_CLAUSE_S = 300;

/** Converts to the common rate of all servers. */
class RateConverter {
  readonly #resampler: Resampler | null;

  constructor(rateHz: number) {
    this.#resampler = rateHz === UPSTREAM_RATE_HZ ? null : new Resampler(rateHz, UPSTREAM_RATE_HZ);
  }

  convert(samples: Int16Array<ArrayBuffer>): Int16Array<ArrayBuffer> {
    if (this.#resampler === null) return samples;
    const output = new Float32Array(this.#resampler.outputBound(samples.length));
    return roundedSamples(output, this.#resampler.process(Float32Array.from(samples), samples.length, output));
  }

  finish(): Int16Array<ArrayBuffer> {
    if (this.#resampler === null) return new Int16Array(0);
    const output = new Float32Array(this.#resampler.outputBound(this.#resampler.inputRateHz));
    return roundedSamples(output, this.#resampler.flush(output));
  }
}
