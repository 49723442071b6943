import type { operations } from '@tandem/client';
import { queryOptions } from '@tanstack/react-query';
import { useRef } from 'react';
import { api, dataOf } from '../app/api.ts';
import { ApiError } from '../app/api-error.ts';
import { everyPage, MOST_PER_PAGE } from '../app/every-page.ts';
import { placeText } from '../text/live.ts';

type Placement = operations['placeCall']['requestBody']['content']['application/json'];

export const callerIdsQuery = queryOptions({
  queryKey: ['caller-ids'],
  queryFn: async ({ signal }) => {
    const pageOf = (page: number) =>
      dataOf(api.GET('/dialer/numbers', { params: { query: { page, limit: MOST_PER_PAGE } }, signal }));
    return (await everyPage(pageOf)).flatMap(({ numbers }) => numbers);
  },
});

/** Builds the request from a form. @throws Error if the metadata is not a JSON object */
export function placementOf(fields: Record<string, string | undefined>): Placement {
  const { agentIs, agent = '', customer = '', did, record, transcribe, reference, metadata } = fields;
  return {
    ...(agentIs === 'browser' ? { agent_endpoint: { type: 'webrtc' } } : { agent_number: agent }),
    customer_number: customer,
    ...(did && { did }),
    ...(reference?.trim() && { reference_id: reference.trim() }),
    ...(metadata?.trim() && { metadata: objectOf(metadata) }),
    record: record !== undefined,
    transcribe: transcribe !== undefined,
  };
}

function objectOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Rejected below, like JSON that is not an object.
  }
  throw new Error(placeText.metadataInvalid);
}

/**
 * Places calls. A request that the server did not refuse may have placed its call, even if a proxy answers 504. A
 * repeated identical request gets the same idempotency key, so the server does not place the call twice. Use `forget`
 * when the dialog closes: an identical call of later is a new one.
 */
export function usePlacement(): { place: (placement: Placement) => Promise<unknown>; forget: () => void } {
  const dialog = useRef<{ unanswered: { body: string; key: string } | null }>({ unanswered: null });
  return {
    async place(placement) {
      // A request can end after the dialog.
      const { current } = dialog;
      const body = JSON.stringify(placement);
      const key = current.unanswered?.body === body ? current.unanswered.key : crypto.randomUUID();
      try {
        const params = { header: { 'idempotency-key': key } };
        const answer = await dataOf(api.POST('/dialer/click2call', { params, body: placement }));
        current.unanswered = null;
        return answer;
      } catch (error) {
        current.unanswered = isRefusal(error) ? null : { body, key };
        throw error;
      }
    },
    forget() {
      dialog.current = { unanswered: null };
    },
  };
}

/** Whether the call may have been placed in spite of the error. A server that answers 503 has not begun to. */
export function mayBePlaced(error: Error): boolean {
  return error instanceof ApiError && error.status !== 503 && !isRefusal(error);
}

function isRefusal(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.code === 'IDEMPOTENCY_IN_PROGRESS') return false;
  return error.status >= 400 && error.status < 500;
}
