import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cleanUp } from '../process/ready-server.ts';
import {
  type ConsoleFixture,
  canBrowse,
  errorsOf,
  expectAccessible,
  expectFits,
  HOSTILE,
  isPwned,
  picture,
  startConsole,
} from './console-fixture.ts';

let console: ConsoleFixture;
let page: Page;

describe.skipIf(!canBrowse)('the health page', () => {
  beforeAll(async () => {
    console = await startConsole({ STT_ENGINE: 'pocketsphinx', TTS_ENGINE: 'espeak-ng' });
    page = await console.signedIn();
  });
  afterAll(cleanUp);

  it('shows checks, nodes, engines, queues and dependencies', async () => {
    await open();
    for (const section of ['Checks', 'Nodes', 'Queues', 'Versions', 'Downloads', 'Language models', 'Readiness']) {
      await page.getByRole('region', { name: section, exact: true }).first().waitFor();
    }
    await page.getByText('this one').waitFor();
    await page.getByText(/s left/).waitFor();
    await page.getByText('espeak-ng').first().waitFor();
    await page.getByText('pocketsphinx', { exact: true }).first().waitFor();
    await page.getByText('The server accepts work.').waitFor();
    expect(await page.getByRole('row').count()).toBeGreaterThan(10);
    await picture(page, 'health');
    await expectAccessible(page);
    await expectFits(page);
    await page.setViewportSize({ width: 360, height: 800 });
    await picture(page, 'health-360');
    await page.setViewportSize({ width: 1280, height: 800 });
    expect(errorsOf(page)).toEqual([]);
  });

  it('keeps the problems in the address, and checks again', async () => {
    await open();
    await page.getByText(/^Problems/).click();
    await page.waitForURL(/show=problems/);
    const again = page.waitForResponse(/system\/health/);
    await page.getByRole('button', { name: 'Check again' }).click();
    expect((await again).status()).toBe(200);
  });

  it('says what to do about a failed check, and shows downloads', async () => {
    await page.route('**/system/health*', async (route) => {
      const { data } = await (await route.fetch()).json();
      await route.fulfill({ json: { success: true, data: { ...data, ...TROUBLE } } });
    });
    await open();
    await page.getByText('Something does not work').waitFor();
    await page.getByText('Make room.').waitFor();
    await page.getByText(HOSTILE).first().waitFor();
    await page.getByText(/250 MB of about 1 GB/).waitFor();
    await page.getByText('Calls go to node-2').waitFor();
    await picture(page, 'health-trouble');
    await expectAccessible(page);
    await expectFits(page, [360]);
    expect(await isPwned(page)).toBe(false);
    await page.unroute('**/system/health*');
  });

  it('says why the server accepts no work', async () => {
    const checks = [{ name: 'database', ok: false, reason: 'The database does not respond.' }];
    await page.route('**/readyz', (route) =>
      route.fulfill({ status: 503, json: { success: false, code: 'NOT_READY', message: '', details: { checks } } }),
    );
    await open();
    await page.getByText('The server does not accept work now.').waitFor();
    await page.getByText('The database does not respond.').waitFor();
    await page.unroute('**/readyz');
  });

  it('offers another try after an error of the server', async () => {
    const error = { success: false, code: 'INTERNAL', message: 'The server failed.', request_id: 'r-1' };
    await page.route('**/system/health*', (route) => route.fulfill({ status: 500, json: error }));
    await open();
    await page.getByRole('alert').getByText('The server failed.').waitFor();
    await page.unroute('**/system/health*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('this one').waitFor();
  });

  it('shows members of other workspaces only whether the server is ready', async () => {
    await open();
    const created = await page.evaluate<{ data: { id: string } }>(`fetch('/workspaces', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Another' }),
    }).then((response) => response.json())`);
    await page.evaluate(`sessionStorage.setItem('tandem.workspace', ${JSON.stringify(created.data.id)})`);
    await page.reload();
    await page.getByText(/first workspace of this server/).waitFor();
    await page.getByText('The server accepts work.').waitFor();
    await picture(page, 'health-denied');
    await expectAccessible(page);
  });
});

const NODE = {
  ...{ boot: 'b', is_this: false, version: null, state: 'lost', calls: 3, media_load: 0.98, can_place_calls: false },
  ...{
    lease_seconds_left: -4.2,
    last_seen_seconds_ago: 12,
    taken_over_by: 'node-2',
    started_at: '2026-01-31T08:00:00Z',
  },
};

const TROUBLE = {
  status: 'failed',
  checks: [{ id: 'disk', name: HOSTILE, status: 'failed', message: `${HOSTILE} is full`, action: 'Make room.' }],
  nodes: [{ ...NODE, name: HOSTILE }],
  downloads: [
    { model: HOSTILE, kind: 'stt', bytes: 250e6, total_bytes: 1e9, progress: 0.25, updated_at: '2026-01-31T08:00:00Z' },
  ],
};

async function open(): Promise<void> {
  await page.goto(`${console.url}/console/health`);
  await page.getByRole('heading', { name: 'Health' }).waitFor();
}
