import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';

/** State of a page that is kept in its address, so that a link reproduces it. */
export type UrlSearch = { [name: string]: string | undefined };

/** The search of an address, as forms write it: the router's own format puts quotes around numbers. */
export function parseSearch(text: string): UrlSearch {
  return Object.fromEntries(new URLSearchParams(text));
}

export function writeSearch(search: Record<string, unknown>): string {
  const text = new URLSearchParams(stringsOf(search) as Record<string, string>).toString();
  return text === '' ? '' : `?${text}`;
}

/** Keeps texts, numbers and booleans, as texts. */
export function stringsOf(search: Record<string, unknown>): UrlSearch {
  return Object.fromEntries(
    Object.entries(search).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
        ? [[name, String(value)]]
        : [],
    ),
  );
}

/** The id of an object in an address. Undefined if it is not one, because an address can contain anything. */
export function idOf(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns the address's search and a function that changes parts of it: empty text and undefined remove a name.
 * `replace` (the default) adds no step to the history.
 */
export function useUrlSearch(): [UrlSearch, (changes: UrlSearch, options?: { replace?: boolean }) => void] {
  const search = useSearch({ strict: false }) as UrlSearch;
  const navigate = useNavigate();
  const change = useCallback(
    (changes: UrlSearch, { replace = true }: { replace?: boolean } = {}) => {
      const next = (previous: UrlSearch) =>
        Object.fromEntries(Object.entries({ ...previous, ...changes }).filter(([, value]) => value));
      void navigate({ to: '.', search: next as never, replace });
    },
    [navigate],
  );
  return [search, change];
}
