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

  /** The console's files need the types of a browser, which those of the tests lack. */
  async function asked(file: string, query: string): Promise<unknown> {
    const exported: unknown = await import(new URL(`../../console/${file}`, import.meta.url).href);
    const { queryFn } = (exported as Record<string, { queryFn: (context: object) => Promise<unknown> }>)[query]!;
    return await queryFn({ signal: new AbortController().signal });
  }
});
