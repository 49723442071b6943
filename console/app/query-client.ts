import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError } from './api-error.ts';
import { watchWorkspace } from './workspace.ts';

/** The cache of server data. Streams write into it, so nothing is polled. */
export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: askForSession }),
  mutationCache: new MutationCache({ onError: askForSession }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 2 && isTransient(error),
    },
  },
});

// All data but the session belongs to the workspace before, which the user switched from, or has left.
watchWorkspace(() => void queryClient.resetQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' }));

/** Retrying a 4xx response does not change it. */
function isTransient(error: Error): boolean {
  return !(error instanceof ApiError) || error.status >= 500;
}

/** A session can end elsewhere, for example after a new password. `shell.tsx` then redirects to the login. */
function askForSession(error: Error): void {
  if (error instanceof ApiError && error.status === 401) confirmSession();
}

export function confirmSession(): void {
  void queryClient.invalidateQueries({ queryKey: ['session'] });
}
