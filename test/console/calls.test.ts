import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Sql } from '../../storage/database.ts';
import { eventually } from '../eventually.ts';
import { cleanUp } from '../process/ready-server.ts';
import {
  type ConsoleFixture,
  canBrowse,
  errorsOf,
  expectAccessible,
  expectFits,
  expectPresentable,
  HOSTILE,
  isPwned,
  picture,
  startConsole,
} from './console-fixture.ts';
import { actAs, refuse } from './talking-town.ts';

const DID = '+911140000001';
const DAYS = 25;
const CALLS_A_DAY = 20;
/** Every fourth call was not answered. */
const COMPLETED = (DAYS * CALLS_A_DAY * 3) / 4;

describe.skipIf(!canBrowse)('the list of calls in the console', () => {
  let console: ConsoleFixture;
  let page: Page;

  beforeAll(async () => {
    console = await startConsole();
    page = await console.signedIn({ viewport: { width: 1280, height: 900 }, timezoneId: 'Asia/Kolkata' });
  });
  afterAll(cleanUp);
  afterEach(async () => {
    expect(errorsOf(page)).toEqual([]);
    expect(await isPwned(page)).toBe(false);
  });

  const open = (search = '') => page.goto(`${console.url}/console/calls${search}`);
  const rows = () => page.getByRole('table', { name: 'Calls' }).getByRole('row');
  const searchField = () => page.getByRole('searchbox');
  const searchOf = () => Object.fromEntries(new URL(page.url()).searchParams);

  it('leads to the first call while there are none', async () => {
    await open();
    await page.getByText('No calls yet').waitFor();
    await expectAccessible(page);
    expect(await page.getByRole('link', { name: 'Place a call' }).getAttribute('href')).toBe('/console/live');
    await console.api.post('/dialer/trunks', { name: 'Carrier', sip_uri: 'sip:127.0.0.1:5070', numbers: [DID] });
    await console.api.post('/dialer/numbers', { e164: DID });
    await seedCalls(console.sql, console.workspaceId);
  });

  it('sends at most 280 kB of script for a page, as only a production build does', async () => {
    await open();
    await rows().nth(20).waitFor();
    const sent = await page.evaluate<number>(`performance.getEntriesByType('resource')
      .filter(({ name }) => /\\.js$/.test(name)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`);
    expect(sent).toBeGreaterThan(50_000);
    expect(sent).toBeLessThan(280_000);
  });

  it('shows the number of calls, answer rate, average talk and cost by day', async () => {
    await open();
    await page.getByText(`${DAYS * CALLS_A_DAY} calls`, { exact: true }).waitFor();
    const statistics = page.getByRole('region', { name: 'Statistics' });
    await statistics.getByText('75%').waitFor();
    await statistics.getByText('1:30', { exact: true }).waitFor();
    await statistics.getByText(`$${(COMPLETED * 0.02).toFixed(2)}`, { exact: true }).waitFor();
    await statistics.getByRole('img', { name: /^Cost of each of 3\d days, at most \$0\.30 on one day$/ }).waitFor();
    await expectPresentable(page, 'calls');
  });

  it('marks the current page and draws the chart also where colors are forced', async () => {
    await page.emulateMedia({ forcedColors: 'active' });
    const styleOf = (selector: string, property: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).${property}`);
    expect(await styleOf('nav [aria-current=page]', 'outlineStyle')).toBe('solid');
    expect(await styleOf('.day-bar', 'backgroundColor')).not.toBe(await styleOf('body', 'backgroundColor'));
    await page.emulateMedia({ forcedColors: 'none' });
  });

  it('keeps the header whole at 320 pixels, to which 400 % zoom shrinks a window of 1280', async () => {
    const size = page.viewportSize()!;
    await page.setViewportSize({ width: 320, height: 256 });
    await expectFits(page, [320]);
    const title = page.getByRole('banner').getByRole('link', { name: 'Tandem' });
    // Two lines of 18 pixels are taller.
    expect((await title.boundingBox())!.height).toBeLessThan(36);
    expect(
      await page.evaluate<boolean>(`[...document.querySelectorAll('header .mantine-Button-label')]
        .some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)`),
    ).toBe(false);
    await page.setViewportSize(size);
  });

  it('offers to try again when a page cannot be loaded, and goes on when the network is back', async () => {
    await open();
    await rows().nth(20).waitFor();
    await page.evaluate('globalThis.isSameDocument = true');
    // A proxy answers for a server that starts again.
    await page.context().route('**/*', (route) => route.fulfill({ status: 502 }));
    await page.getByRole('link', { name: 'Wallet and usage' }).click();
    await page.getByRole('alert').getByText('The server answered 502').waitFor();
    await page.context().unroute('**/*');
    await page.context().setOffline(true);
    await page.getByRole('link', { name: 'Live', exact: true }).click();
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    await page.context().setOffline(false);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Live' }).waitFor();
    expect(await page.evaluate('globalThis.isSameDocument')).toBe(true);
    // The rules of a style sheet that failed to load cannot be read.
    expect(await page.evaluate('[...document.styleSheets].every(({ cssRules }) => cssRules.length > 0)')).toBe(true);
  });

  it('loads older calls while it scrolls, and draws only those near the window', async () => {
    await open();
    await rows().nth(20).waitFor();
    expect(await rows().count()).toBeLessThan(80);
    const oldest = page.getByRole('link', { name: /\+919800000001/ });
    await eventually(async () => {
      await page.mouse.wheel(0, 5_000);
      expect(await oldest.count()).toBe(1);
    });
    expect(await rows().count()).toBeLessThan(80);
  });

  it.each([360, 800, 1024, 1280])(
    'shows long numbers, times and amounts whole on a screen of %i pixels',
    async (width) => {
      await page.setViewportSize({ width, height: 800 });
      await page.route(/\/dialer\/click2call\?/, async (route) => {
        const response = await route.fetch();
        const body = await response.json();
        Object.assign(body.data.calls[0], LONG_CALL);
        await route.fulfill({ response, json: body });
      });
      await open();
      await page.getByRole('link', { name: new RegExp(`\\${LONG_CALL.agent_number}`) }).waitFor();
      await eventually(async () => expect(await page.evaluate<string[]>(CUT_CELLS)).toEqual([]));
      await expectFits(page, [width]);
      await picture(page, `calls-${width}`);
      await page.unrouteAll();
      await page.setViewportSize({ width: 1280, height: 900 });
    },
  );

  it('opens calls by keyboard', async () => {
    await open();
    const links = page.getByRole('table', { name: 'Calls' }).getByRole('link');
    await links.first().focus();
    await page.keyboard.press('ArrowDown');
    const second = await links.nth(1).getAttribute('href');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${console.url}${second}`);
    await page.goBack();
    await links.first().waitFor();
  });

  it.each([
    ['the last digits of a number', '0042', /\+919800000042/],
    ['a reference', 'order-43', /\+919800000043/],
    ['a reference of digits', '20260046', /\+919800000046/],
    ['a text of the metadata', 'note <44>', /\+919800000044/],
    ['a word of the metadata', 'C-1047', /\+919800000047/],
  ])('finds a call by %s, and keeps the search in the address', async (_, text, call) => {
    await open();
    await searchField().fill(text);
    await page.getByText('1 calls', { exact: true }).waitFor();
    await page.getByRole('link', { name: call }).waitFor();
    expect(searchOf().q).toBe(text);
    await page.reload();
    await page.getByRole('link', { name: call }).waitFor();
    expect(await rows().count()).toBe(2);
  });

  it('finds a call by its id', async () => {
    await open('?q=call_45');
    await page.getByRole('link', { name: /\+919800000045/ }).waitFor();
    await searchField().fill('call_unknown');
    await page.getByText('No calls match').waitFor();
    await page.getByRole('button', { name: 'Clear the search' }).click();
    await rows().nth(20).waitFor();
    expect(searchOf()).toEqual({});
  });

  it('shows no total and exports nothing while it shows one call by its id', async () => {
    await open();
    await page.getByText(`${DAYS * CALLS_A_DAY} calls`, { exact: true }).waitFor();
    await searchField().fill('call_45');
    await page.getByRole('link', { name: /\+919800000045/ }).waitFor();
    await eventually(async () => expect(await rows().count()).toBe(2));
    expect(await page.getByText(/^\d+ calls$/).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Export CSV' }).count()).toBe(0);
  });

  it('drops a search that is cleared before it began', async () => {
    const typing = await page.context().newPage();
    await typing.clock.install();
    await typing.goto(`${console.url}/console/calls`);
    await typing.getByRole('searchbox').fill('order-43');
    await typing.getByRole('button', { name: 'Clear the search' }).click();
    await typing.clock.runFor(1_000);
    await typing.getByRole('link', { name: /\+919800000500/ }).waitFor();
    expect(new URL(typing.url()).search).toBe('');
    await typing.close();
  });

  it('removes all filters at once', async () => {
    await open('?q=call_unknown');
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await rows().nth(20).waitFor();
    expect(searchOf()).toEqual({});
  });

  it('filters by state, direction and period, and exports the same calls', async () => {
    await open();
    await page.getByRole('combobox', { name: 'State' }).selectOption('failed');
    await page.getByText(`${(DAYS * CALLS_A_DAY) / 4} calls`, { exact: true }).waitFor();
    await page.getByRole('combobox', { name: 'Direction' }).selectOption('inbound');
    await page.getByText('No calls match').waitFor();
    await page.getByRole('combobox', { name: 'Direction' }).selectOption('outbound');
    await page.getByRole('combobox', { name: 'Period' }).selectOption('7d');
    const shown = await eventually(async () => {
      const total = Number.parseInt((await page.getByText(/^\d+ calls$/).textContent()) ?? '', 10);
      // The totals of the filters before show meanwhile: none, and all that failed.
      expect(total).toBeGreaterThan(0);
      expect(total).toBeLessThanOrEqual((7 * CALLS_A_DAY) / 4);
      return total;
    });
    expect(searchOf()).toEqual({ state: 'failed', direction: 'outbound', period: '7d' });
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export CSV' }).click(),
    ]);
    const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n');
    expect(lines).toHaveLength(shown + 1);
    expect(lines.slice(1).every((line) => line.includes('failed'))).toBe(true);
  });

  it('saves a view with a hostile name, opens it and removes it', async () => {
    await open('?state=failed');
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('menuitem', { name: 'Save this view' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill(HOSTILE);
    await page.getByRole('dialog').getByRole('button', { name: 'Save this view' }).click();
    await open();
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('menuitem', { name: HOSTILE, exact: true }).click();
    await page.waitForURL(/state=failed/);
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('button', { name: `Remove view ${HOSTILE}` }).click();
    await page.getByText('No saved views').waitFor();
  });

  it('says why calls cannot be loaded, and tries again', async () => {
    await refuse(page, /\/click2call$/, { status: 500, code: 'INTERNAL_ERROR', message: 'The database is down.' });
    await open();
    await page.getByText('The database is down.').waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Try again' }).click();
    await rows().nth(20).waitFor();
  });

  it('shows calls to a viewer', async () => {
    const viewer = await page.context().newPage();
    await actAs(viewer, 'viewer');
    await viewer.goto(`${console.url}/console/calls`);
    await viewer.getByRole('table', { name: 'Calls' }).getByRole('row').nth(20).waitFor();
    await viewer.close();
  });
});

/** Numbers have at most 15 digits (E.164). */
const LONG_CALL = {
  agent_number: '+999123456789012',
  customer_number: '+999987654321098',
  legs: [],
  direction: 'inbound',
  state: 'failed',
  terminal_event: 'call.temporaryfailed',
  talk_seconds: 36_754,
  cost_usd: 1_234.5678,
};

/** The cells that cut their text, or the arrow between both numbers. */
const CUT_CELLS = `[...document.querySelectorAll('tr[data-index] > td:not([data-column=reference])')]
  .filter((cell) => cell.scrollWidth > cell.clientWidth || cell.querySelector('svg')?.getBoundingClientRect().width < 10)
  .map((cell) => cell.textContent)`;

/** Calls of the last days, as many each day, from the oldest on. */
async function seedCalls(sql: Sql, workspaceId: string): Promise<void> {
  await sql`
    insert into calls (call_id, workspace_id, reference_id, trunk_id, did, agent_number, customer_number, state, seq,
      terminal_event, hangup_cause, talk_seconds, metadata, cost_nano, agent_ring_timeout_s, customer_ring_timeout_s,
      max_duration_s, price_per_minute_nano, placed_via, owner_node, owner_boot, created_at)
    select 'call_' || n, ${workspaceId}, case when n = 46 then '20260046' else 'order-' || n end, (select id from trunks), ${DID}, '+9198' || lpad(n::text, 8, '0'),
      '+919810000002', case when n % 4 = 0 then 'failed' else 'completed' end, 8,
      case when n % 4 = 0 then 'call.not_answered' else 'call.completed' end,
      case when n % 4 = 0 then 'USER_BUSY' else 'NORMAL_CLEARING' end, case when n % 4 = 0 then 0 else 90 end,
      json_build_object('note', 'note <' || n || '> ' || ${HOSTILE}::text, 'customer', 'C-' || 1000 + n), case when n % 4 = 0 then 0 else 20000000 end,
      30, 45, 3600, 60000000, 'session', 'node', 'boot',
      now() - (${DAYS * CALLS_A_DAY}::int - n) * interval '1 day' / ${CALLS_A_DAY}::int - interval '1 minute'
    from generate_series(1, ${DAYS * CALLS_A_DAY}::int) n`;
}
