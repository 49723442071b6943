import { type SynthesisEngine, SynthesizerError } from '../../synthesizer.ts';
import { OpenAiSynthesizer } from './openai-synthesizer.ts';
import { SpeechServer, type SpeechServerOptions } from './speech-server.ts';
import { SpeechVoices } from './speech-voices.ts';

export interface OpenAiSynthesisOptions extends SpeechServerOptions {
  /** Limit of concurrent clauses. */
  maxRequests: number;
}

/** An engine for any server with OpenAI's `/audio/speech`. */
export function createOpenAiSynthesisEngine(options: OpenAiSynthesisOptions): SynthesisEngine {
  // Shared, so that all instances use what was detected about the server.
  const server = new SpeechServer(options);
  const voices = new SpeechVoices(server);
  return {
    name: 'openai',
    source: options.baseUrl,
    controlsPitch: false,
    maxInstances: options.maxRequests,
    voices: () => voices.list(),
    problem: async () => null,
    async start({ model, signal }) {
      signal.throwIfAborted();
      if (model !== options.model) {
        throw new SynthesizerError(
          'model',
          `the speech server is asked for ${options.model}, not for ${model}: see TTS_MODEL`,
        );
      }
      return new OpenAiSynthesizer(server, voices, signal);
    },
  };
}
