/** One page of a list; `page` counts from 1. */
export interface Page {
  page: number;
  limit: number;
}

export interface PageOf<T> {
  rows: T[];
  /** Items on all pages. */
  total: number;
}

export function offsetOf({ page, limit }: Page): number {
  return (page - 1) * limit;
}
