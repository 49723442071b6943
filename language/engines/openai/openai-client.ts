import OpenAI from 'openai';
import { boundedFetch } from './bounded-fetch.ts';

export interface ModelServerAddress {
  /** With its version, such as `http://127.0.0.1:11434/v1`. */
  baseUrl: string;
  /** Null for servers that ask for none. */
  apiKey: string | null;
}

/** Asks once: whether something is tried again is for its caller to say, as is how long it may take. */
export function createOpenAiClient({ baseUrl, apiKey }: ModelServerAddress): OpenAI {
  return new OpenAI({
    baseURL: baseUrl.replace(/\/+$/, ''),
    // Given in full, since the package would take what is left out from the environment.
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
