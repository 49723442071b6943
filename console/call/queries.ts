import type { operations } from '@tandem/client';
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import type { CallEvent } from './call-data.ts';

/** Queries about one call. Its stream keeps the shown data up to date. */

const pathOf = (id: string) => ({ path: { id } });

export function callQuery(id: string) {
  return queryOptions({
    queryKey: ['call', id],
    queryFn: async ({ signal }) => {
      // Makes the server check whether a finished call's recording exists.
      const params = { ...pathOf(id), query: { refresh: true } };
      return (await dataOf(api.GET('/dialer/click2call/{id}', { params, signal }))).call;
    },
  });
}

export function callEventsQuery(id: string) {
  return queryOptions({
    queryKey: ['call', id, 'events'],
    queryFn: async ({ signal }) =>
      (await dataOf(api.GET('/dialer/click2call/{id}/events', { params: pathOf(id), signal }))).events,
  });
}

export function sipQuery(id: string) {
  return queryOptions({ queryKey: ['call', id, 'sip'], queryFn: ({ signal }) => readSip(id, signal) });
}

function readSip(id: string, signal: AbortSignal) {
  // Without it, the response is a ladder for terminals.
  const options = { params: pathOf(id), headers: { accept: 'application/json' }, signal };
  return dataOf(
    api.GET('/dialer/click2call/{id}/sip', options) as Promise<{ data?: { data: SipTrace }; response: Response }>,
  );
}

type SipTrace = operations['getCallSip']['responses'][200]['content']['application/json']['data'];
export type SipMessage = SipTrace['messages'][number];

export function transcriptQuery(id: string) {
  return queryOptions({ queryKey: ['call', id, 'transcript'], queryFn: ({ signal }) => readTranscript(id, signal) });
}

function readTranscript(id: string, signal: AbortSignal) {
  return dataOf(api.GET('/dialer/click2call/{id}/transcript', { params: pathOf(id), signal }));
}

export type Transcript = Awaited<ReturnType<typeof readTranscript>>;
export type Segment = Transcript['segments'][number];

/**
 * Presigned URLs of the recording, valid for five minutes. Each request signs new ones. Another URL stops the player, so
 * only the player requests one.
 */
export function recordingQuery(id: string) {
  return queryOptions({
    queryKey: ['call', id, 'recording'],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    queryFn: () => mintRecording(id),
  });
}

/** Signs URLs of the recording. @throws ApiError */
export async function mintRecording(id: string) {
  return (await dataOf(api.POST('/dialer/click2call/{id}/recording', { params: pathOf(id), body: {} }))).recording;
}

export type Recording = Awaited<ReturnType<typeof mintRecording>>;

export function qualityQuery(id: string) {
  return queryOptions({ queryKey: ['call', id, 'quality'], queryFn: ({ signal }) => readQuality(id, signal) });
}

function readQuality(id: string, signal: AbortSignal) {
  return dataOf(api.GET('/dialer/click2call/{id}/quality', { params: pathOf(id), signal }));
}

export type CallQuality = Awaited<ReturnType<typeof readQuality>>;

const PAGE_SIZE = 100;

/**
 * Reads all pages into the first, because nothing of a call may be missing. A row that was added meanwhile moves others
 * to the next page, so these are read twice.
 */
async function readAll<Page extends { pagination: { pages: number } }>(
  read: (page: number) => Promise<Page>,
  rowsOf: (page: Page) => { id: string | number }[],
): Promise<Page> {
  const all = await read(1);
  const known = new Set(rowsOf(all).map(({ id }) => id));
  for (let page = 2; page <= all.pagination.pages; page++) {
    const others = rowsOf(await read(page)).filter(({ id }) => !known.has(id));
    for (const { id } of others) known.add(id);
    rowsOf(all).push(...others);
  }
  return all;
}

export function deliveriesQuery(id: string) {
  return queryOptions({ queryKey: ['call', id, 'deliveries'], queryFn: ({ signal }) => readDeliveries(id, signal) });
}

function readDeliveries(id: string, signal: AbortSignal) {
  return readAll(
    (page) => {
      const params = { ...pathOf(id), query: { page, limit: PAGE_SIZE } };
      return dataOf(api.GET('/dialer/click2call/{id}/deliveries', { params, signal }));
    },
    ({ deliveries }) => deliveries,
  );
}

export type Delivery = Awaited<ReturnType<typeof readDeliveries>>['deliveries'][number];

/** Queues the replay and refreshes the list. @throws ApiError */
export async function replayDelivery(callId: string, deliveryId: string): Promise<void> {
  const params = { path: { id: callId, delivery_id: deliveryId } };
  await dataOf(api.POST('/dialer/click2call/{id}/deliveries/{delivery_id}/replay', { params }));
  await queryClient.invalidateQueries({ queryKey: deliveriesQuery(callId).queryKey });
}

export function ledgerQuery(id: string) {
  return queryOptions({ queryKey: ['call', id, 'ledger'], queryFn: ({ signal }) => readLedger(id, signal) });
}

function readLedger(id: string, signal: AbortSignal) {
  return readAll(
    (page) => {
      const params = { ...pathOf(id), query: { page, limit: PAGE_SIZE } };
      return dataOf(api.GET('/dialer/click2call/{id}/ledger', { params, signal }));
    },
    ({ entries }) => entries,
  );
}

export type CallLedger = Awaited<ReturnType<typeof readLedger>>;

export function evaluationsQuery(id: string) {
  return queryOptions({ queryKey: ['call', id, 'evaluations'], queryFn: ({ signal }) => readEvaluations(id, signal) });
}

function readEvaluations(callId: string, signal: AbortSignal) {
  return readAll(
    (page) => {
      const query = { page, limit: PAGE_SIZE, call_id: callId };
      return dataOf(api.GET('/judge/evaluations', { params: { query }, signal }));
    },
    ({ evaluations }) => evaluations,
  );
}

export type Evaluation = Awaited<ReturnType<typeof readEvaluations>>['evaluations'][number];

/** Adds an event of the stream to the cache, and refreshes the data it affects. */
export function takeEvent(id: string, event: CallEvent): void {
  queryClient.setQueryData<CallEvent[]>(callEventsQuery(id).queryKey, (known) => withEvent(known, event));
  void queryClient.invalidateQueries({ queryKey: callQuery(id).queryKey, exact: true });
  if (event.event === 'transcript.final') {
    void queryClient.invalidateQueries({ queryKey: transcriptQuery(id).queryKey });
  }
}

/** Events can arrive twice, from the stream and from a request. */
export function withEvent(known: CallEvent[] | undefined, event: CallEvent): CallEvent[] | undefined {
  if (known === undefined) return undefined;
  const others = known.filter(({ sequence }) => sequence !== event.sequence);
  return [...others, event].sort((a, b) => a.sequence - b.sequence);
}
