import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

/** More than a page. */
const COUNT = 101;

describe('choices of the console', () => {
  beforeAll(() => {
    vi.stubGlobal('location', new URL('https://tandem.example/console/live'));
    vi.stubGlobal('localStorage', { getItem: () => null });
    vi.stubGlobal('fetch', async ({ pathname, searchParams }: URL) => {
      const [page, limit] = ['page', 'limit'].map((name) => Number(searchParams.get(name) ?? 1));
      const ids = Array.from({ length: COUNT }, (_, index) => index).slice((page! - 1) * limit!, page! * limit!);
      const pagination = { page, limit, total: COUNT, pages: Math.ceil(COUNT / limit!) };
      return Response.json({ success: true, data: { [pathname.split('/').at(-1)!]: ids, pagination } });
    });
  });
  afterAll(() => vi.unstubAllGlobals());

  it('include all rented numbers as caller ids', async () => {
    expect(await asked('live/placement.ts', 'callerIdsQuery')).toHaveLength(COUNT);
  });

  it('include all rubrics', async () => {
    expect(await asked('playground/queries.ts', 'rubricsQuery')).toHaveLength(COUNT);
  });

  it('include all colleagues to transfer a call to', async () => {
    const id = '00000000-0000-4000-8000-000000000000';
    expect(await asked('phone/queries.ts', 'colleaguesQuery', id)).toHaveLength(COUNT);
  });

  /** The console's files need the types of a browser, which those of the tests lack. */
  async function asked(file: string, query: string, ...options: string[]): Promise<unknown> {
    const exported: unknown = await import(new URL(`../../console/${file}`, import.meta.url).href);
    const found = (exported as Record<string, Query | ((...given: string[]) => Query)>)[query]!;
    const { queryFn } = typeof found === 'function' ? found(...options) : found;
    return await queryFn({ signal: new AbortController().signal });
  }
});

interface Query {
  queryFn: (context: object) => Promise<unknown>;
}
