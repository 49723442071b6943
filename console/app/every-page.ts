export const MOST_PER_PAGE = 100;

interface OnePage {
  pagination: { pages: number };
}

/** Fetches all pages of a list, one after the other. */
export async function everyPage<Page extends OnePage>(pageOf: (page: number) => Promise<Page>): Promise<Page[]> {
  const pages: Page[] = [];
  for (let page = 1; ; page += 1) {
    const next = await pageOf(page);
    pages.push(next);
    if (page >= next.pagination.pages) return pages;
  }
}
