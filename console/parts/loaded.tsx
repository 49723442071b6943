import type { ReactNode } from 'react';
import { ErrorState, LoadingState } from './states.tsx';

interface LoadedProps<T> {
  /** A query, or a paged list. */
  query: { data: T | undefined; error: Error | null; refetch: () => Promise<unknown> };
  children: (data: T) => ReactNode;
}

/** The content of a query, or its loading or error state. A failed refresh keeps existing data. */
export function Loaded<T>({ query, children }: LoadedProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  return <LoadingState />;
}
