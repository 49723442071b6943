import OpenAI from 'openai';
import type { RecognitionEngine, RecognizerDescription } from '../../recognizer.ts';
import { WHISPER_LANGUAGES } from '../whisper-languages.ts';
import { fetchAtMost } from './bounded-fetch.ts';
import { OpenAiRecognizer } from './openai-recognizer.ts';

export interface OpenAiEngineOptions {
  /** With its version, such as `http://gpu:8000/v1`. */
  baseUrl: string;
  /** Null for servers that ask for none. */
  apiKey: string | null;
  model: string;
  /** How many utterances may be on their way at a time. */
  maxRequests: number;
  /** ISO 639-1; default those of Whisper. */
  languages?: readonly string[];
  /** Until the whole answer is there. Default 60 s. */
  answerWithinMs?: number;
}

/** Any server with OpenAI's `/audio/transcriptions`. */
export function createOpenAiEngine(options: OpenAiEngineOptions): RecognitionEngine {
  const { apiKey, model, maxRequests, languages = WHISPER_LANGUAGES } = options;
  const client = new OpenAI({
    baseURL: options.baseUrl.replace(/\/+$/, ''),
    // Given in full, since the package would take what is left out from the environment.
    apiKey: apiKey ?? 'none',
    organization: null,
    project: null,
    logLevel: 'off',
    ...(apiKey === null && { defaultHeaders: { Authorization: null } }),
    timeout: options.answerWithinMs ?? 60_000,
    // Whether something is tried again is for the host to decide.
    maxRetries: 0,
    fetch: fetchAtMost(MOST_ANSWER_BYTES),
  });
  const description: RecognizerDescription = {
    engine: 'openai',
    model,
    languages,
    detectsLanguage: languages.length > 1,
    streams: false,
    boostsKeywords: true,
    hasConfidence: true,
  };
  // Learned once for all instances.
  const server = { client, secret: apiKey, tellsWords: true };
  return {
    name: 'openai',
    maxInstances: maxRequests,
    describe: async () => [description],
    load: async () => new OpenAiRecognizer(description, server),
  };
}

/** The words of an utterance of ten minutes are 300 kB at most. */
const MOST_ANSWER_BYTES = 4_000_000;
