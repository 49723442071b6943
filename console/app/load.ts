import { apiErrorOf, reach } from './api.ts';

const AGAIN_MS = 2_000;

/** Loads a script. While the server is unreachable, tries again, because React keeps the failure of a lazy component. */
export async function patiently<T>(load: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await load();
    } catch (error) {
      const isReachable = await requireServer().then(
        () => true,
        () => false,
      );
      if (isReachable) throw error;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

/** @throws ApiError if the server, or a proxy in front of it, does not answer properly */
export async function requireServer(): Promise<void> {
  const response = await reach('/user');
  if (response.status >= 500) throw apiErrorOf(response, null);
}
