import { ApiError } from '../cli/api-client.ts';

/**
 * Places one call after the other, for ever. The server refuses some: it is busy, or the user changed a setting in the
 * console and may change it back.
 * @throws the error of a call, except a refusal; a refusal of the API key
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
      if (!(error instanceof ApiError) || error.status === null || error.status === 401) throw error;
      onRefusal(error);
    }
    await pause();
  }
}
