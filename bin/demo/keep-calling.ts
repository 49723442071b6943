import { ApiError } from '../cli/api-client.ts';

/**
 * Places one call after the other, for ever. A busy server refuses some.
 * @throws the error of a call, except a refusal with status 429 or 503
 */
export async function keepCalling({
  oneCall,
  pause,
  onRefusal,
}: {
  /** Resolves at the end of the call. */
  oneCall: () => Promise<void>;
  pause: () => Promise<unknown>;
  onRefusal: (refusal: ApiError) => void;
}): Promise<never> {
  for (;;) {
    try {
      await oneCall();
    } catch (error) {
      if (!(error instanceof ApiError && (error.status === 429 || error.status === 503))) throw error;
      onRefusal(error);
    }
    await pause();
  }
}
