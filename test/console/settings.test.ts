import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { apiClient } from '../../bin/cli/api-client.ts';
import { eventually } from '../eventually.ts';
import { cleanUp, fund } from '../process/ready-server.ts';
import {
  type ConsoleFixture,
  canBrowse,
  errorsOf,
  expectAccessible,
  expectPresentable,
  HOSTILE,
  isPwned,
  picture,
  startConsole,
} from './console-fixture.ts';
import { joinedAs, PASSWORD, WITH_INVITATIONS } from './member-fixture.ts';
import { refuse, startReceiver } from './talking-town.ts';

const OWNER_PASSWORD = 'seven quite unrelated words';

/** Checks that the tables of a page break no amount, role or other short word into several lines. */
async function expectWholeWords(page: Page): Promise<void> {
  const size = page.viewportSize()!;
  for (const width of [360, 800]) {
    await page.setViewportSize({ width, height: 800 });
    await eventually(async () => expect(await page.evaluate<string[]>(BROKEN_WORDS), `${width} pixels`).toEqual([]));
  }
  await page.setViewportSize(size);
}

/** Longer words, such as addresses, may break. */
const BROKEN_WORDS = `(() => {
  const texts = document.createTreeWalker(document.querySelector('tbody'), NodeFilter.SHOW_TEXT);
  const broken = [];
  while (texts.nextNode()) {
    for (const { 0: word, index } of texts.currentNode.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, index);
      range.setEnd(texts.currentNode, index + word.length);
      const lines = new Set([...range.getClientRects()].map(({ top }) => top));
      if (word.length <= 14 && lines.size > 1) broken.push(word);
    }
  }
  return broken;
})()`;

/** Keeps the latest alert, also after the page is loaded anew. */
const KEEP_ALERT = `new MutationObserver(() => {
  const alert = document.querySelector('[role=alert]');
  if (alert !== null) sessionStorage.setItem('alert', alert.textContent);
}).observe(document, { childList: true, subtree: true });`;

describe.skipIf(!canBrowse)('the settings pages of the console', () => {
  let console: ConsoleFixture;
  let page: Page;

  beforeAll(async () => {
    console = await startConsole({ ...WITH_INVITATIONS, TTS_ENGINE: 'espeak-ng' });
    await fund(console.sql, console.workspaceId);
    page = await console.signedIn({ viewport: { width: 1280, height: 900 } });
  });
  afterAll(cleanUp);
  afterEach(async () => {
    expect(errorsOf(page)).toEqual([]);
    expect(await isPwned(page)).toBe(false);
  });

  const open = (path: string, on = page) => on.goto(`${console.url}/console${path}`);
  const dialog = () => page.getByRole('dialog');
  const expectFocus = (name: string) =>
    eventually(async () => {
      const focused = await page.evaluate<string>(
        'document.activeElement.ariaLabel ?? document.activeElement.innerText',
      );
      expect(focused).toBe(name);
    });

  describe('API keys', () => {
    it('creates a key, shows it once, and the key works until it is deleted', async () => {
      await open('/developers');
      await page.getByRole('button', { name: 'Create a key' }).first().click();
      await dialog().getByRole('textbox', { name: 'Name' }).fill(HOSTILE);
      await dialog().getByRole('radio', { name: 'Only these scopes' }).check();
      await dialog().getByRole('checkbox', { name: 'calls:read' }).check();
      await expectAccessible(page);
      await dialog().getByRole('button', { name: 'Create key' }).click();
      const secret = page.getByRole('dialog', { name: 'New API key' });
      await secret.waitFor();
      const key = (await secret.locator('code').textContent())!;
      const ask = (path: string) => fetch(`${console.url}${path}`, { headers: { authorization: `Bearer ${key}` } });
      expect((await ask('/dialer/click2call')).status).toBe(200);
      expect((await ask('/billing/wallet')).status).toBe(403);
      await secret.getByRole('button', { name: 'Close' }).last().click();
      const row = page.getByRole('row').filter({ hasText: HOSTILE });
      await row.waitFor();
      expect(await page.getByText(key).count()).toBe(0);
      await expectFocus('Create a key');
      await expectPresentable(page, 'developers-keys');
      await row.getByRole('button', { name: /^Delete/ }).click();
      await dialog().getByRole('button', { name: 'Delete key' }).click();
      await row.waitFor({ state: 'detached' });
      await expectFocus('API keys');
      expect((await ask('/dialer/click2call')).status).toBe(401);
    });
  });

  describe('webhooks', () => {
    it('adds a webhook, sends it a test event, and shows the delivery', async () => {
      const receiver = await startReceiver();
      await open('/developers?tab=webhooks');
      await page.getByText('No webhooks yet').waitFor();
      await page.getByRole('button', { name: 'Add a webhook' }).first().click();
      await dialog()
        .getByRole('textbox', { name: 'URL' })
        .fill(`${receiver.url}?${encodeURIComponent(HOSTILE)}`);
      await dialog().getByRole('button', { name: 'All events' }).click();
      await expectAccessible(page);
      await dialog().getByRole('button', { name: 'Add webhook' }).click();
      const secret = page.getByRole('dialog', { name: 'Signing secret' });
      await secret.getByText(/whsec_/).waitFor();
      await secret.getByRole('button', { name: 'Close' }).last().click();
      await page.getByRole('button', { name: 'Send a test event' }).click();
      await page.getByRole('button', { name: 'Send', exact: true }).click();
      await eventually(() => expect(receiver.requests).toHaveLength(1));
      await page.getByRole('button', { name: 'Refresh' }).click();
      await page.getByRole('button', { name: /^Delivered/ }).click();
      await page.getByText('HTTP 204', { exact: false }).waitFor();
      await expectPresentable(page, 'developers-webhook');
    });

    it('keeps what others changed of a webhook while its form was open', async () => {
      const { webhooks } = await console.api.get<{ webhooks: { id: string }[] }>('/webhooks');
      const path = `/webhooks/${webhooks[0]!.id}`;
      await page.getByRole('button', { name: 'Edit' }).click();
      const form = page.getByRole('dialog', { name: 'Edit the webhook' });
      await form.getByRole('textbox', { name: 'URL' }).fill('http://127.0.0.1/edited');
      await console.api.patch(path, { events: ['call.failed'] });
      await form.getByRole('button', { name: 'Save changes' }).click();
      await form.waitFor({ state: 'detached' });
      expect(await console.api.get(path)).toMatchObject({ url: 'http://127.0.0.1/edited', events: ['call.failed'] });
    });

    it('shows why a URL is refused, and keeps it', async () => {
      await open('/developers?tab=webhooks');
      await page.getByRole('button', { name: 'Add a webhook' }).first().click();
      await dialog().getByRole('textbox', { name: 'URL' }).fill('http://10.0.0.1/hook');
      await dialog().getByRole('button', { name: 'All events' }).click();
      await dialog().getByRole('button', { name: 'Add webhook' }).click();
      await dialog().getByRole('alert').waitFor();
      expect(await dialog().getByRole('textbox', { name: 'URL' }).inputValue()).toBe('http://10.0.0.1/hook');
    });
  });

  it('shows in the audit log what was done', async () => {
    await open('/developers?tab=audit');
    await page.getByRole('cell', { name: 'api_key.created' }).waitFor();
    await expectPresentable(page, 'developers-audit');
  });

  describe('people', () => {
    it('invites a person, who joins by the link with the role', async () => {
      await open('/people?tab=members');
      await page.getByRole('button', { name: 'Invite a person' }).click();
      await dialog().getByRole('textbox', { name: 'Email' }).fill('asha@example.com');
      await expectAccessible(page);
      await dialog().getByRole('button', { name: 'Create invitation' }).click();
      const link = page.getByRole('dialog', { name: 'Invitation link' });
      const url = (await link.locator('code').textContent())!;
      const guest = await (await console.browser.newContext()).newPage();
      await guest.goto(url);
      await guest.getByRole('textbox', { name: 'Email that was invited' }).fill('asha@example.com');
      await guest.getByRole('textbox', { name: 'Your name' }).fill(HOSTILE);
      await guest.locator('input[type=password]').fill(PASSWORD);
      await expectAccessible(guest);
      await guest.getByRole('button', { name: 'Create account and join' }).click();
      await guest.waitForURL(/\/live/);
      await guest.context().close();
      await open('/people?tab=members');
      await page.getByRole('row').filter({ hasText: 'asha@example.com' }).getByText(HOSTILE).waitFor();
      await expectPresentable(page, 'people');
      await open('/people?tab=invitations');
      await page.getByText('Accepted').waitFor();
      await expectWholeWords(page);
      await expectPresentable(page, 'people-invitations');
    });

    it('changes a role at once, and removes a member after a question', async () => {
      const member = await joinedAs(console, 'member');
      await open('/people?tab=members');
      const row = page.getByRole('row').filter({ hasText: /member-\w+@example\.com/ });
      await row.getByRole('button', { name: /^Change role/ }).click();
      await dialog()
        .getByRole('radio', { name: /^Viewer/ })
        .check();
      await dialog().getByRole('button', { name: 'Change role' }).click();
      await row.getByText('Viewer').waitFor();
      await open('/developers', member);
      await member.getByText('Viewers cannot create keys.').waitFor();
      await row.getByRole('button', { name: /^Remove/ }).click();
      await dialog().getByRole('button', { name: 'Remove member' }).click();
      await row.waitFor({ state: 'detached' });
      await member.context().close();
    });
  });

  it('shows nothing of a workspace that the user has left', async () => {
    await console.api.post('/dialer/do-not-call', { numbers: ['+919833333333'] });
    const admin = await joinedAs(console, 'admin');
    const own = { headers: { origin: console.url }, data: { name: 'Own' } };
    expect((await admin.request.post(`${console.url}/workspaces`, own)).status()).toBe(201);
    const numbers = admin.getByRole('link', { name: 'Numbers and trunks' });
    const doNotCall = admin.getByRole('tab', { name: 'Do not call' });
    await open('/numbers?tab=do-not-call', admin);
    await admin.getByText('+919833333333').waitFor();
    await admin.getByRole('link', { name: 'People' }).click();
    const row = admin.getByRole('row').filter({ hasText: 'You' });
    await row.getByRole('button', { name: /^Remove/ }).click();
    await admin.getByRole('dialog').getByRole('button', { name: 'Remove member' }).click();
    await row.getByText('Owner').waitFor();
    await numbers.click();
    await doNotCall.click();
    await admin.getByText('No numbers on the list').waitFor();
    await admin.context().close();
  });

  describe('wallet', () => {
    it('shows the balance, the usage by day and product, and each charge', async () => {
      await console.api.post('/memory/ingest', { text: 'Asha prefers calls after six.' });
      await open('/wallet');
      await page.getByText('Available', { exact: true }).waitFor();
      await page.getByRole('img', { name: /^Spent on each of 30 days/ }).waitFor();
      await expectPresentable(page, 'wallet');
      await open('/wallet?tab=ledger');
      await page.getByRole('table', { name: 'Charges and refunds' }).getByRole('row').nth(1).waitFor();
      await expectWholeWords(page);
      await expectPresentable(page, 'wallet-ledger');
      await open('/wallet?tab=payments');
      await page.getByRole('table').getByRole('row').nth(1).waitFor();
      await expectPresentable(page, 'wallet-payments');
      await open('/wallet?tab=prices');
      await page.getByRole('table').first().waitFor();
      await expectPresentable(page, 'wallet-prices');
    });

    it('names the deleted API key whose charges it shows', async () => {
      await open('/developers');
      const request = JSON.stringify({
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'Old CRM', workspace_id: console.workspaceId }),
      });
      const { data } = await page.evaluate<{ data: { id: number; key: string } }>(
        `fetch('/developer/api', ${request}).then((response) => response.json())`,
      );
      await apiClient({ url: console.url, apiKey: data.key }).post('/memory/ingest', { text: 'Ravi moved to Pune.' });
      await console.api.delete(`/developer/api/${data.id}`);
      await open('/wallet');
      await page.getByRole('link', { name: 'Old CRM' }).click();
      await page.getByRole('table', { name: 'Charges and refunds' }).waitFor();
      const keys = page.getByRole('combobox', { name: 'API key' });
      expect(await keys.locator('option:checked').textContent()).toBe(`API key ${data.id}`);
    });

    it('says how to top up', async () => {
      await open('/wallet');
      await page.getByRole('button', { name: 'Top up' }).click();
      await dialog()
        .getByText(/npm run top-up -- 10/)
        .waitFor();
      await expectAccessible(page);
    });

    it('says why it is shown to owners only', async () => {
      const viewer = await joinedAs(console, 'viewer');
      await open('/wallet', viewer);
      await viewer.getByText('Only owners of this workspace see its wallet and what it used.').waitFor();
      await expectAccessible(viewer);
      await viewer.context().close();
    });

    it('says why the server does not answer, and tries again', async () => {
      await refuse(page, /\/billing\/wallet$/, {
        status: 500,
        code: 'INTERNAL_ERROR',
        message: 'The database is down.',
      });
      await open('/wallet');
      await page.getByText('The database is down.').waitFor();
      await page.unrouteAll();
      await page.getByRole('button', { name: 'Try again' }).first().click();
      await page.getByText('Available', { exact: true }).waitFor();
    });
  });

  describe('account', () => {
    it('logs in by the link that the server prints, and logs out', async () => {
      const guest = await (await console.browser.newContext()).newPage();
      await guest.goto(`${console.url}${await console.ownerLogin()}`);
      await guest.getByRole('button', { name: 'Log in with this link' }).click();
      await guest.getByRole('navigation').first().waitFor();
      await guest.getByRole('button', { name: /^Account/ }).click();
      await guest.context().setOffline(true);
      await guest.getByRole('menuitem', { name: 'Log out' }).click();
      await guest.getByText(/^The server does not answer/).waitFor();
      await guest.context().setOffline(false);
      await guest.getByRole('button', { name: /^Account/ }).click();
      await guest.getByRole('menuitem', { name: 'Log out' }).click();
      await guest.getByRole('heading', { name: 'Log in to Tandem' }).waitFor();
      await guest.context().close();
    });

    it('sets a first password, with which the owner logs in elsewhere', async () => {
      await open('/account');
      await page.getByText('You have no password yet. Set one to log in next time.').first().waitFor();
      await page.getByLabel('New password').fill('short');
      await page.getByRole('button', { name: 'Set password' }).click();
      await page.getByRole('alert').waitFor();
      await page.getByLabel('New password').fill(OWNER_PASSWORD);
      await page.getByRole('button', { name: 'Set password' }).click();
      await page.getByText(/Your new password works from now on/).waitFor();
      await expectPresentable(page, 'account');

      const { email } = await console.api.get<{ email: string }>('/user');
      const elsewhere = await (await console.browser.newContext()).newPage();
      await open('/wallet?tab=prices', elsewhere);
      await elsewhere.getByRole('heading', { name: 'Log in to Tandem' }).waitFor();
      await expectAccessible(elsewhere);
      await picture(elsewhere, 'login');
      await elsewhere.getByRole('textbox', { name: 'Email' }).fill(email);
      await elsewhere.locator('input[type=password]').fill('wrong password here');
      await elsewhere.getByRole('button', { name: 'Log in' }).click();
      await elsewhere.getByRole('alert').waitFor();
      await elsewhere.locator('input[type=password]').fill(OWNER_PASSWORD);
      await elsewhere.getByRole('button', { name: 'Log in' }).click();
      await elsewhere.waitForURL(/\/wallet\?tab=prices/);

      await page.reload();
      await page.getByRole('button', { name: 'Log out all others' }).click();
      await dialog().getByRole('button', { name: 'Log out all others' }).click();
      await page.getByText('Ended 1 other session.').waitFor();
      await elsewhere.reload();
      await elsewhere.getByRole('heading', { name: 'Log in to Tandem' }).waitFor();
      await elsewhere.context().close();
    });

    it('shows nothing that the user typed to the next user who logs in', async () => {
      const { email } = await console.api.get<{ email: string }>('/user');
      const guest = await joinedAs(console, 'member');
      const toCorrection = async () => {
        await guest.getByRole('link', { name: 'Playground' }).click();
        await guest.getByRole('tab', { name: 'Correction' }).click();
      };
      const field = guest.getByRole('textbox', { name: 'Text', exact: true });
      await open('/live', guest);
      await toCorrection();
      await field.fill('a private letter');
      await guest.getByRole('button', { name: /^Account/ }).click();
      await guest.getByRole('menuitem', { name: 'Log out' }).click();
      await guest.getByRole('textbox', { name: 'Email' }).fill(email);
      await guest.locator('input[type=password]').fill(OWNER_PASSWORD);
      await guest.getByRole('button', { name: 'Log in' }).click();
      await toCorrection();
      expect(await field.inputValue()).not.toContain('private');
      await guest.context().close();
    });

    it('shows nothing that the user typed to another user who logs in after the session has ended', async () => {
      const { email } = await console.api.get<{ email: string }>('/user');
      const guest = await joinedAs(console, 'member');
      const toCorrection = async () => {
        await guest.getByRole('link', { name: 'Playground' }).click();
        await guest.getByRole('tab', { name: 'Correction' }).click();
      };
      const field = guest.getByRole('textbox', { name: 'Text', exact: true });
      await open('/live', guest);
      await guest.evaluate(`sessionStorage.setItem('tandem.phone', '{"resumeToken":"none"}')`);
      await toCorrection();
      await field.fill('a private letter');
      await guest.context().clearCookies();
      await guest.getByRole('link', { name: 'Calls', exact: true }).click();
      await guest.getByRole('textbox', { name: 'Email' }).fill(email);
      await guest.locator('input[type=password]').fill(OWNER_PASSWORD);
      await guest.getByRole('button', { name: 'Log in' }).click();
      await guest.waitForURL(/\/calls$/);
      await toCorrection();
      expect(await field.inputValue()).not.toContain('private');
      expect(await guest.evaluate(`sessionStorage.getItem('tandem.phone')`)).toBe(null);
      await guest.context().close();
    });

    it('follows the login and the logout of another tab', async () => {
      const { email } = await console.api.get<{ email: string }>('/user');
      const guest = await joinedAs(console, 'member');
      const tab = await guest.context().newPage();
      await open('/account', guest);
      await guest.getByRole('button', { name: /^Account/ }).waitFor();
      await open('/login', tab);
      await tab.getByRole('textbox', { name: 'Email' }).fill(email);
      await tab.locator('input[type=password]').fill(OWNER_PASSWORD);
      await tab.getByRole('button', { name: 'Log in' }).click();
      await guest.getByText(email).first().waitFor();
      await tab.getByRole('button', { name: /^Account/ }).click();
      await tab.getByRole('menuitem', { name: 'Log out' }).click();
      await guest.getByRole('heading', { name: 'Log in to Tandem' }).waitFor();
      await guest.context().close();
    });

    it('shows no error while the login loads after the user has logged out', async () => {
      const guest = await joinedAs(console, 'member');
      await guest.addInitScript(KEEP_ALERT);
      await open('/live', guest);
      await guest.getByRole('button', { name: /^Account/ }).click();
      await guest.getByRole('menuitem', { name: 'Log out' }).click();
      await guest.getByRole('heading', { name: 'Log in to Tandem' }).waitFor();
      expect(await guest.evaluate(`sessionStorage.getItem('alert')`)).toBe(null);
      await guest.context().close();
    });

    it('forgets the phone of the user who goes on to join with another account', async () => {
      const guest = await joinedAs(console, 'member');
      await open('/join?token=none', guest);
      await guest.evaluate(`sessionStorage.setItem('tandem.phone', '{"resumeToken":"none"}')`);
      await guest.getByRole('button', { name: 'Use another account' }).click();
      await guest.getByRole('textbox', { name: 'Email' }).waitFor();
      expect(await guest.evaluate(`sessionStorage.getItem('tandem.phone')`)).toBe(null);
      await guest.context().close();
    });

    it('leads to the login when the session ends, and back afterwards', async () => {
      const { email } = await console.api.get<{ email: string }>('/user');
      await open('/people?tab=members');
      await page.getByRole('table').waitFor();
      const login = Promise.withResolvers<void>();
      await page.route(/\/login-[^/]*\.js$/, async (route) => {
        await login.promise;
        await route.continue();
      });
      await page.context().clearCookies();
      const refused = page.waitForResponse((response) => response.status() === 401);
      await page.getByRole('tab', { name: 'Invitations' }).click();
      await refused;
      await page.waitForURL(/\/login\?next=/);
      expect(new URL(page.url()).searchParams.get('next')).toBe('/people?tab=invitations');
      login.resolve();
      await page.getByRole('textbox', { name: 'Email' }).fill(email);
      await page.locator('input[type=password]').fill(OWNER_PASSWORD);
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.waitForURL(/\/people\?tab=invitations/);
      await page.unrouteAll();
    });
  });
});
