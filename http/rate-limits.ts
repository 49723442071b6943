import { TandemError } from '../machines/errors.ts';
import type { RateLimitState } from '../storage/limits/limits.ts';

export function rateLimitHeaders(state: RateLimitState): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(state.limit),
    'X-RateLimit-Remaining': String(state.remaining),
    'X-RateLimit-Reset': String(state.resetAtS),
  };
}

export function rateLimited({ limit, retryAfterS }: RateLimitState): TandemError {
  return new TandemError(
    'RATE_LIMITED',
    `The rate limit of ${limit} requests is reached. Try again in ${retryAfterS} s.`,
    {
      retryAfterS,
    },
  );
}
