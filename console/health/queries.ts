import { queryOptions } from '@tanstack/react-query';
import { api, apiErrorOf, dataOf, reach } from '../app/api.ts';

export const healthQuery = queryOptions({
  queryKey: ['system-health'],
  // The server repeats its checks after this time.
  staleTime: 15_000,
  queryFn: async () => await dataOf(api.GET('/system/health')),
});

export type SystemHealth = Awaited<ReturnType<NonNullable<typeof healthQuery.queryFn>>>;

export interface Readiness {
  isReady: boolean;
  checks: readonly { name: string; ok: boolean; reason: string | null }[];
}

export const readinessQuery = queryOptions({
  queryKey: ['readiness'],
  staleTime: 15_000,
  queryFn: async (): Promise<Readiness> => {
    const response = await reach('/readyz');
    const body = await response.json().catch(() => null);
    // 503 has the same checks in its details.
    const checks = body?.data?.checks ?? body?.details?.checks;
    if (!Array.isArray(checks)) throw apiErrorOf(response, body);
    return { isReady: response.ok, checks };
  },
});
