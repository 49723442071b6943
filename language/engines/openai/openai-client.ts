import OpenAI from 'openai';
import { boundedFetch } from './bounded-fetch.ts';

export interface ModelServerAddress {
  /** Includes the version, such as `http://127.0.0.1:11434/v1`. */
  baseUrl: string;
  /** Null for servers without authentication. */
  apiKey: string | null;
}

/** Creates a client without retries or timeouts, which are the caller's task. */
export function createOpenAiClient({ baseUrl, apiKey }: ModelServerAddress): OpenAI {
  return new OpenAI({
    baseURL: baseUrl.replace(/\/+$/, ''),
    // Every option is set, because the package reads omitted ones from the environment.
    apiKey: apiKey ?? 'none',
    organization: null,
    project: null,
    logLevel: 'off',
    ...(apiKey === null && { defaultHeaders: { Authorization: null } }),
    timeout: LONGEST_MS,
    maxRetries: 0,
    fetch: boundedFetch,
  });
}

const LONGEST_MS = 3_600_000;
