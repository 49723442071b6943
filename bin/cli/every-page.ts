import type { Api } from './api-client.ts';

/** Reads all pages of a list, whose path may already have a query. */
export async function everyPage<Page extends object>(api: Api, path: string): Promise<Page[]> {
  const all: Page[] = [];
  for (let page = 1; ; page += 1) {
    const query = `${path.includes('?') ? '&' : '?'}limit=100&page=${page}`;
    const answer = await api.get<Page & { pagination: { pages: number } }>(path + query);
    all.push(answer);
    if (page >= answer.pagination.pages) return all;
  }
}
