import { type ErrorComponentProps, useRouter } from '@tanstack/react-router';
import { ErrorState } from '../parts/states.tsx';

/** Shown when a page failed to load or render. */
export function RouteErrorState({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const retry = () => {
    reset();
    void router.invalidate();
  };
  return <ErrorState error={error} onRetry={retry} />;
}
