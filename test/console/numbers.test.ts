import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setPrice } from '../../storage/price-book.ts';
import { eventually } from '../eventually.ts';
import { clean, cleanUp, fund } from '../process/ready-server.ts';
import { type LoopbackCarrier, startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { type Softphone, startSoftphone } from '../softphone/softphone.ts';
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
import { joinedAs, WITH_INVITATIONS } from './member-fixture.ts';

const NUMBER = '+911140000001';
const SPARE = '+911140000002';

let console: ConsoleFixture;
let page: Page;
let agent: Softphone;
let customer: Softphone;
let carrier: LoopbackCarrier;

describe.skipIf(!canBrowse)('the page of numbers and trunks', () => {
  beforeAll(async () => {
    console = await startConsole(WITH_INVITATIONS);
    agent = await startSoftphone({ name: 'agent', user: '+919811111111' });
    customer = await startSoftphone({ name: 'customer', user: '+919822222222' });
    const routes = new Map([agent, customer].map((phone) => [phone.user, phone.address]));
    carrier = await startLoopbackCarrier({ routes, registrar: {} });
    clean.push(() => Promise.all([agent.stop(), customer.stop(), carrier.stop()]));
    const { sql, workspaceId } = console;
    await fund(sql, workspaceId);
    await setPrice(sql, { scope: { workspaceId }, item: 'number', value: 1_500_000_000n, now: new Date() });
    page = await console.signedIn({ reducedMotion: 'reduce' });
  });
  afterAll(cleanUp);

  it('leads from no numbers to the form of a trunk', async () => {
    await open('');
    await page.getByRole('heading', { name: 'No numbers yet' }).waitFor();
    await picture(page, 'numbers-empty');
    await expectGood(page);
    await page.getByRole('button', { name: 'Add a trunk' }).click();
    await page.getByRole('heading', { name: 'No trunks yet' }).waitFor();
    expect(page.url()).toContain('tab=trunks');
    await page.getByRole('button', { name: 'Add a trunk' }).click();
    await dialog().getByLabel('Name', { exact: false }).first().waitFor();
    await picture(page, 'trunk-form');
    await expectGood(page);
  });

  it('shows what is wrong with a trunk, and keeps what was typed', async () => {
    const form = dialog();
    await form.getByRole('textbox', { name: 'Name', exact: true }).fill(HOSTILE);
    await form.getByRole('textbox', { name: 'SIP address of the carrier' }).fill(carrier.sipUri);
    await form.getByRole('combobox', { name: 'Numbers of the trunk' }).fill('12 ');
    await form.getByRole('button', { name: 'Add trunk' }).click();
    await form.getByRole('alert').getByText('numbers').waitFor();
    await picture(page, 'trunk-form-refused');
    expect(await form.getByRole('textbox', { name: 'SIP address of the carrier' }).inputValue()).toBe(carrier.sipUri);
  });

  it('adds a trunk, registers it, and shows that the carrier responds', async () => {
    const form = dialog();
    await form.getByRole('combobox', { name: 'Numbers of the trunk' }).press('Backspace');
    await form.getByRole('combobox', { name: 'Numbers of the trunk' }).fill(`${NUMBER} ${SPARE} `);
    await form.getByRole('textbox', { name: 'User name', exact: true }).fill('tandem');
    await form.getByLabel('Password', { exact: true }).fill('carrier secret');
    await form.getByRole('switch', { name: 'Register at the carrier' }).click();
    await form.getByRole('textbox', { name: 'Price per minute' }).fill('0.6');
    await form.getByRole('button', { name: 'Add trunk' }).click();
    const panel = dialog(HOSTILE);
    await panel.getByText('Registered', { exact: true }).waitFor();
    await panel.getByText('Up', { exact: true }).waitFor();
    await panel.getByRole('button', { name: 'Check now' }).click();
    await page.getByText('The carrier responds.').waitFor();
    await panel
      .getByText(/^200 in \d+ ms$/)
      .first()
      .waitFor();
    await picture(page, 'trunk');
    await expectGood(page);
    expect(await panel.getByText('carrier secret').count()).toBe(0);
    const { trunks } = await console.api.get<{ trunks: object[] }>('/dialer/trunks');
    expect(trunks).toMatchObject([
      { name: HOSTILE, register: true, price_per_minute_usd: 0.6, numbers: [NUMBER, SPARE] },
    ]);
  });

  it('edits a trunk without its password', async () => {
    await dialog(HOSTILE).getByRole('button', { name: 'Edit' }).click();
    const form = dialog(`Edit ${HOSTILE}`);
    await form.getByRole('textbox', { name: 'Name', exact: true }).fill('Carrier');
    await form.getByRole('button', { name: 'Save changes' }).click();
    await dialog('Carrier').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Carrier' }).waitFor();
    await picture(page, 'trunks');
    await expectGood(page);
  });

  it('keeps what others changed of a trunk while its form was open', async () => {
    const { trunks } = await console.api.get<{ trunks: { id: string }[] }>('/dialer/trunks');
    await page.getByRole('link', { name: 'Carrier' }).click();
    await dialog('Carrier').getByRole('button', { name: 'Edit' }).click();
    const form = dialog('Edit Carrier');
    await form.getByRole('textbox', { name: 'Price per minute' }).fill('0.7');
    await console.api.patch(`/dialer/trunks/${trunks[0]!.id}`, { channels: 3 });
    await form.getByRole('button', { name: 'Save changes' }).click();
    await form.waitFor({ state: 'detached' });
    const trunk = await console.api.get(`/dialer/trunks/${trunks[0]!.id}`);
    expect(trunk).toMatchObject({ channels: 3, price_per_minute_usd: 0.7, username: 'tandem', name: 'Carrier' });
    await console.api.patch(`/dialer/trunks/${trunks[0]!.id}`, { channels: 10, price_per_minute_usd: 0.6 });
  });

  it('rents a number after it has said the price', async () => {
    await open('');
    await page.getByRole('button', { name: 'Rent a number' }).click();
    const panel = dialog('Rent a number');
    await panel.getByRole('textbox', { name: 'Find numbers' }).fill('0001');
    await panel.getByRole('cell', { name: SPARE, exact: true }).waitFor({ state: 'detached' });
    await picture(page, 'rent');
    await expectGood(page);
    await panel.getByRole('button', { name: `Rent: ${NUMBER}` }).click();
    const asked = dialog(`Rent ${NUMBER}?`);
    await asked.getByText('$1.50 is charged now').waitFor();
    await page.route('**/dialer/numbers*', (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({
            status: 402,
            json: { code: 'INSUFFICIENT_CREDITS', message: 'Top up the wallet by 1.50 USD.' },
          })
        : route.fallback(),
    );
    await asked.getByRole('button', { name: 'Rent for $1.50 a month' }).click();
    await asked.getByRole('alert').getByText('Top up the wallet by 1.50 USD.').waitFor();
    await page.unroute('**/dialer/numbers*');
    await asked.getByRole('button', { name: 'Rent for $1.50 a month' }).click();
    await asked.waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await page.getByRole('table', { name: 'Rented numbers' }).getByText(NUMBER).waitFor();
  });

  it('makes a number the caller id', async () => {
    await page.getByRole('button', { name: `Use as caller ID: ${NUMBER}` }).click();
    await page.getByText('Default caller ID').waitFor();
    await picture(page, 'numbers');
    await expectGood(page);
  });

  it('shows numbers on one line and statuses whole, on a narrow screen and beside a long name', async () => {
    const size = page.viewportSize()!;
    const lengthy = { name: 'Provider'.repeat(12), sip_uri: 'sip:carrier.example', numbers: ['+911140000003'] };
    const { id } = await console.api.post<{ id: string }>('/dialer/trunks', lengthy);
    await page.setViewportSize({ width: 360, height: 800 });
    await open('');
    const number = page.getByRole('table', { name: 'Rented numbers' }).getByText(NUMBER, { exact: true });
    await number.waitFor();
    // Two lines of 14 pixels are taller.
    expect((await number.boundingBox())!.height).toBeLessThan(28);
    await open('?tab=trunks');
    await page.getByRole('link', { name: lengthy.name }).waitFor();
    const cut = await page.evaluate<string[]>(`[...document.querySelectorAll('td .mantine-Badge-label')]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map(({ textContent }) => textContent)`);
    expect(cut).toEqual([]);
    await console.api.delete(`/dialer/trunks/${id}`);
    await page.setViewportSize(size);
  });

  it('places a test call that rings both phones, and follows it', async () => {
    await open('?tab=trunks');
    await page.getByRole('link', { name: 'Carrier' }).press('Enter');
    await dialog('Carrier').getByRole('button', { name: 'Place a test call' }).click();
    const form = dialog('Test call over Carrier');
    await form.getByText('costs at most $0.60').waitFor();
    await form.getByRole('textbox', { name: 'First phone' }).fill(agent.user);
    await form.getByRole('textbox', { name: 'Second phone' }).fill(customer.user);
    await picture(page, 'test-call');
    await expectGood(page);
    await form.getByRole('checkbox', { name: 'I may ring these phones now' }).check();
    await form.getByRole('button', { name: 'Ring the phones' }).click();
    const progress = page.getByRole('log', { name: 'Progress of the test call' });
    await progress.getByText('The two phones are connected').waitFor();
    await picture(page, 'test-call-connected');
    await expectGood(page);
    await page.getByRole('button', { name: 'Hang up' }).click();
    await page.getByText('The trunk works: both phones were connected.').waitFor();
    await Promise.all([agent.until('bye'), customer.until('bye')]);
    await page.getByRole('button', { name: 'Done' }).click();
    const { calls } = await console.api.get<{ calls: { metadata: object }[] }>('/dialer/click2call');
    expect(calls).toMatchObject([{ metadata: { test_call: true }, did: NUMBER }]);
  });

  it('forwards calls to a number to a phone, and refuses a number that cannot be', async () => {
    await open('');
    await page.getByRole('button', { name: `Set rule: ${NUMBER}` }).click();
    const form = dialog(`Calls to ${NUMBER}`);
    await form.getByRole('radio', { name: 'Forward the call' }).check();
    await form.getByRole('textbox', { name: 'Phone number' }).fill('112');
    await form.getByRole('button', { name: 'Save rule' }).click();
    await form.getByRole('alert').waitFor();
    await picture(page, 'inbound-rule');
    await expectGood(page);
    await form.getByRole('textbox', { name: 'Phone number' }).fill(agent.user);
    await form.getByRole('switch', { name: 'Record the call' }).click();
    await form.getByRole('button', { name: 'Save rule' }).click();
    await page.getByText(`Forwarded to ${agent.user}`).waitFor();
    await page.getByRole('button', { name: `Set rule: ${NUMBER}` }).click();
    await form.getByRole('combobox', { name: 'Forward to' }).selectOption('webrtc');
    await form.getByRole('button', { name: 'Save rule' }).click();
    await page.getByText('Forwarded to your browser').waitFor();
  });

  it('changes the calling rules', async () => {
    await open('?tab=rules');
    await page.getByRole('textbox', { name: 'Most spent on calls per day' }).fill('20');
    await page.getByRole('button', { name: 'Add a limit' }).click();
    await page.getByRole('textbox', { name: 'Prefix', exact: true }).fill('+91');
    await page.getByRole('switch', { name: 'Only call at certain hours' }).click();
    await page.getByLabel('From').waitFor();
    await picture(page, 'calling-rules');
    await expectGood(page);
    await page.getByRole('button', { name: 'Save rules' }).click();
    await page.getByText('Saved the calling rules.').waitFor();
    expect(await console.api.get('/dialer/calling-rules')).toMatchObject({
      daily_spend_cap_usd: 20,
      destination_limits: [{ prefix: '+91', calls_per_minute: 60 }],
      calling_hours: { start: '09:00' },
    });
  });

  it('keeps calling rules that others changed while the form was open', async () => {
    await console.api.patch('/dialer/calling-rules', { daily_spend_cap_usd: 5 });
    await page.getByRole('combobox', { name: 'Blocked prefixes' }).fill('+979');
    const answered = page.waitForResponse((response) => response.request().method() === 'PATCH');
    await page.getByRole('button', { name: 'Save rules' }).click();
    await answered;
    const saved = { daily_spend_cap_usd: 5, blocked_prefixes: ['+979'], calling_hours: { start: '09:00' } };
    expect(await console.api.get('/dialer/calling-rules')).toMatchObject(saved);
    const cap = page.getByRole('textbox', { name: 'Most spent on calls per day' });
    await eventually(async () => expect(await cap.inputValue()).toBe('5'));
  });

  it('keeps the do-not-call list', async () => {
    await open('?tab=do-not-call');
    await page.getByRole('heading', { name: 'No numbers on the list' }).waitFor();
    await picture(page, 'do-not-call-empty');
    await page.getByRole('button', { name: 'Add numbers' }).click();
    const form = dialog('Add numbers');
    await form.getByRole('textbox', { name: 'Numbers' }).fill(`${customer.user}\n+919800000001`);
    await form.getByRole('button', { name: 'Add numbers' }).click();
    await page.getByText('Added 2 numbers.').waitFor();
    await page.getByRole('textbox', { name: 'Check a number' }).fill(customer.user);
    await page.keyboard.press('Enter');
    await page.getByText('Calls to it are rejected.').waitFor();
    await picture(page, 'do-not-call');
    await expectGood(page);
    await page.getByRole('button', { name: 'Remove: +919800000001' }).click();
    await page.getByRole('button', { name: 'Allow calls' }).click();
    await page.getByRole('cell', { name: '+919800000001', exact: true }).waitFor({ state: 'detached' });
  });

  it('releases a number, disables and deletes a trunk, each after a question', async () => {
    await open('');
    await page.getByRole('button', { name: `Release: ${NUMBER}` }).click();
    await page.getByRole('button', { name: 'Release number' }).click();
    await page.getByRole('heading', { name: 'No numbers yet' }).waitFor();
    await open('?tab=trunks');
    await page.getByRole('link', { name: 'Carrier' }).click();
    await dialog('Carrier').getByRole('button', { name: 'Disable' }).click();
    await dialog('Disable Carrier?').getByRole('button', { name: 'Disable' }).click();
    await dialog('Carrier').getByRole('button', { name: 'Enable' }).waitFor();
    await dialog('Carrier').getByRole('button', { name: 'Delete' }).click();
    await dialog('Delete Carrier?').getByRole('button', { name: 'Delete trunk' }).click();
    await page.getByRole('heading', { name: 'No trunks yet' }).waitFor();
    expect(errorsOf(page)).toEqual([]);
  });

  it('offers a viewer nothing that would be refused', async () => {
    const viewer = await joinedAs(console, 'viewer');
    await viewer.goto(`${console.url}/console/numbers`);
    await viewer.getByRole('heading', { name: 'No numbers yet' }).waitFor();
    expect(await viewer.getByRole('main').getByRole('button').count()).toBe(0);
    await viewer.goto(`${console.url}/console/numbers?tab=trunks`);
    await viewer.getByRole('heading', { name: 'You do not have access' }).waitFor();
    await picture(viewer, 'trunks-denied');
    await viewer.goto(`${console.url}/console/numbers?tab=rules`);
    await viewer.getByText('Admins and owners can change these rules.').waitFor();
    expect(await viewer.getByRole('button', { name: 'Save rules' }).count()).toBe(0);
    await expectGood(viewer);
    await viewer.context().close();
  });

  it('shows an error of the server with what to do', async () => {
    await page.route('**/dialer/numbers?*', (route) =>
      route.fulfill({ status: 500, json: { code: 'INTERNAL', message: 'Try again later.', request_id: 'r-1' } }),
    );
    await open('');
    await page.getByRole('alert').getByText('Try again later.').waitFor();
    await page.unroute('**/dialer/numbers?*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'No numbers yet' }).waitFor();
  });
});

async function open(search: string): Promise<void> {
  await page.goto(`${console.url}/console/numbers${search}`);
}

/** The dialog that is open on top, or the one with this title. */
function dialog(title?: string): Locator {
  return title === undefined ? page.getByRole('dialog').last() : page.getByRole('dialog', { name: title, exact: true });
}

async function expectGood(shown: Page): Promise<void> {
  await expectAccessible(shown);
  await expectFits(shown);
  expect(await isPwned(shown)).toBe(false);
  expect(errorsOf(shown)).toEqual([]);
}
