import { api } from '../../app/api.ts';
import { charged } from '../charged.ts';

export interface SearchForm {
  query: string;
  /** `context`: text for a prompt instead of a list. */
  mode: 'memories' | 'context';
  limit: number;
  threshold: number;
  maxTokens: number;
}

/** Path and body of a search. */
export function searchRequestOf({ query, mode, limit, threshold, maxTokens }: SearchForm) {
  const least = threshold > 0 ? { threshold } : {};
  return mode === 'context'
    ? ({ path: '/memory/context', json: { query, max_tokens: maxTokens, ...least } } as const)
    : ({ path: '/memory/search', json: { query, limit, ...least } } as const);
}

export type SearchResult = Awaited<ReturnType<typeof search>>;
export type FoundMemory = Extract<SearchResult, { mode: 'memories' }>['results'][number];

/** @throws ApiError */
export async function search(form: SearchForm) {
  const request = searchRequestOf(form);
  if (request.path === '/memory/context') {
    const { body, ...charge } = await charged(api.POST(request.path, { body: request.json }));
    return { mode: 'context' as const, ...charge, ...body.data };
  }
  const { body, ...charge } = await charged(api.POST(request.path, { body: request.json }));
  return { mode: 'memories' as const, ...charge, ...body.data };
}

export interface NewMemory {
  text: string;
  title: string;
}

export function ingestRequestOf({ text, title }: NewMemory) {
  return { text, ...(title.trim() !== '' && { title: title.trim() }) };
}

/** @throws ApiError */
export async function ingest(memory: NewMemory) {
  const { body, ...charge } = await charged(api.POST('/memory/ingest', { body: ingestRequestOf(memory) }));
  return { ...charge, ...body.data };
}
