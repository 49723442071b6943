import OpenAI from 'openai';
import type { RecognitionEngine, RecognizerDescription } from '../../recognizer.ts';
import { WHISPER_LANGUAGES } from '../whisper-languages.ts';
import { fetchAtMost } from './bounded-fetch.ts';
import { OpenAiRecognizer } from './openai-recognizer.ts';

export interface OpenAiEngineOptions {
  /** Includes the version, such as `http://gpu:8000/v1`. */
  baseUrl: string;
  /** Null for servers without authentication. */
  apiKey: string | null;
  model: string;
  /** Limit of concurrent utterances. */
  maxRequests: number;
  /** ISO 639-1; default: Whisper's languages. */
  languages?: readonly string[];
  /** Timeout of the whole response. Default 60 s. */
  answerWithinMs?: number;
}

/** An engine for any server with OpenAI's `/audio/transcriptions`. */
export function createOpenAiEngine(options: OpenAiEngineOptions): RecognitionEngine {
  const { apiKey, model, maxRequests, languages = WHISPER_LANGUAGES } = options;
  const client = new OpenAI({
    baseURL: options.baseUrl.replace(/\/+$/, ''),
    // Every option is set, because the package reads omitted ones from the environment.
    apiKey: apiKey ?? 'none',
    organization: null,
    project: null,
    logLevel: 'off',
    ...(apiKey === null && { defaultHeaders: { Authorization: null } }),
    timeout: options.answerWithinMs ?? 60_000,
    // Retries are the caller's task.
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
  // Shared by all instances.
  const server = { client, secret: apiKey, supportsVerboseJson: true };
  return {
    name: 'openai',
    maxInstances: maxRequests,
    describe: async () => [description],
    load: async () => new OpenAiRecognizer(description, server),
  };
}

/** The words of an utterance of ten minutes have at most 300 kB. */
const MOST_ANSWER_BYTES = 4_000_000;
