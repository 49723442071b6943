import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import { eventually } from '../eventually.ts';
import { cleanUp } from '../process/ready-server.ts';
import { canBrowse, errorsOf, expectAccessible, expectPresentable, HOSTILE, isPwned } from './console-fixture.ts';
import { actAs, refuse, startReceiver, startTalkingTown, type TalkingTown } from './talking-town.ts';

describe.skipIf(!canBrowse)('the page of a call in the console', () => {
  let town: TalkingTown;
  let page: Page;
  /** It was recorded, transcribed, and its callback delivered. */
  let talked: PublicCall;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;

  beforeAll(async () => {
    town = await startTalkingTown();
    receiver = await startReceiver();
    talked = await talk();
    page = await town.signedIn({ viewport: { width: 1280, height: 900 } });
  });
  afterAll(cleanUp);
  afterEach(async () => {
    expect(errorsOf(page)).toEqual([]);
    expect(await isPwned(page)).toBe(false);
  });

  /** Both parties say a sentence, then the agent hangs up. */
  async function talk(): Promise<PublicCall> {
    const { call_id: id } = await town.place({
      ...{ record: true, transcribe: true, metadata: { note: HOSTILE, order: 1042 } },
      ...{ callback_url: receiver.url, callback_secret: 'a secret of the test' },
    });
    await eventually(async () => expect(await audibleLegs(id)).toEqual(['agent', 'customer']));
    town.agent.hangup();
    await town.untilState(id, 'completed');
    return await eventually(async () => {
      const call = await town.untilState(id, 'completed');
      expect(call.recording_available).toBe(true);
      return call;
    });
  }

  async function audibleLegs(id: string): Promise<string[]> {
    const { segments } = await town.api.get<{ segments: { leg: string }[] }>(`/dialer/click2call/${id}/transcript`);
    return [...new Set(segments.map(({ leg }) => leg))].sort();
  }

  const open = (id: string, search = '', on = page) => on.goto(`${town.url}/console/calls/${id}${search}`);
  const tab = (name: string) => page.getByRole('tab', { name, exact: true });

  it('shows state, parties, times, cost and events, and metadata as text', async () => {
    await open(talked.call_id);
    await page.getByRole('heading', { name: `${town.agent.user} to ${town.customer.user}` }).waitFor();
    await page.getByText('Completed', { exact: true }).waitFor();
    await page.getByText('Both parties talk', { exact: true }).waitFor();
    await page.getByText(HOSTILE.replaceAll('"', '\\"'), { exact: false }).waitFor();
    const details = page.getByRole('region', { name: 'Details' });
    await details.getByText('Loopback', { exact: true }).waitFor();
    await details.getByText('Stored', { exact: true }).waitFor();
    expect(await page.getByRole('figure', { name: 'Who was in the call when' }).locator('li').count()).toBeGreaterThan(
      2,
    );
    expect(await page.getByRole('button', { name: 'Hang up' }).count()).toBe(0);
    await expectPresentable(page, 'call-overview');
  });

  it('shows the SIP messages as a ladder, whose messages open by keyboard and by address', async () => {
    await open(talked.call_id);
    await tab('SIP').click();
    const invite = page.getByRole('button', { name: 'INVITE to Agent' }).first();
    await expectPresentable(page, 'call-sip');
    await invite.focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const message = page.getByRole('region', { name: 'Text of the message' });
    await message.waitFor();
    expect(page.url()).toContain('message=2');
    await page.getByRole('button', { name: 'Previous message' }).click();
    await page.getByRole('dialog', { name: /^INVITE/ }).waitFor();
    expect(await message.textContent()).toMatch(/^INVITE sip:/);
    await page.keyboard.press('Escape');
    await message.waitFor({ state: 'detached' });
    const answer = page.getByRole('button', { name: '200 OK from Agent' }).first();
    await answer.click();
    expect(await message.textContent()).toContain(`s=${HOSTILE}`);
    await expectPresentable(page, 'call-sip-message');
    await page.reload();
    await message.waitFor();
  });

  it('downloads the capture', async () => {
    await open(talked.call_id, '?tab=sip');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download capture' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/\.pcapng$/);
    expect(await download.failure()).toBeNull();
  });

  it('plays the recording by keyboard, and follows and seeks by the transcript', async () => {
    await open(talked.call_id, '?tab=recording');
    const wave = page.getByRole('slider', { name: /^Waveform/ });
    await wave.locator('canvas').first().waitFor();
    await expectPresentable(page, 'call-recording');
    await wave.focus();
    await page.keyboard.press('Space');
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    await page.keyboard.press('Space');
    await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
    await page.keyboard.press('End');
    const length = Number(await wave.getAttribute('aria-valuemax'));
    await eventually(async () => expect(Number(await wave.getAttribute('aria-valuenow'))).toBe(length));
    await page.keyboard.press('Home');
    await eventually(async () => expect(await wave.getAttribute('aria-valuenow')).toBe('0'));

    const transcript = page.getByRole('region', { name: 'Transcript' });
    const last = transcript.getByRole('listitem').last();
    await last.getByRole('button').click();
    await eventually(async () => expect(await last.getAttribute('data-current')).toBe('true'));
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    const first = transcript.getByRole('listitem').first();
    await first.locator('p > span').first().click();
    await eventually(async () => expect(await first.getAttribute('data-current')).toBe('true'));
  });

  const audio = <T>(property: string) => page.evaluate<T>(`document.querySelector('audio')?.${property}`);
  const untilLoaded = () => eventually(async () => expect(await audio('readyState')).toBeGreaterThan(0));

  it('keeps position and speed when the connection returns and when the URL has expired', async () => {
    await open(talked.call_id, '?tab=recording');
    await untilLoaded();
    await page.getByRole('combobox', { name: 'Speed' }).selectOption('0.75');
    await page.getByRole('slider', { name: /^Waveform/ }).focus();
    await page.keyboard.press('ArrowRight');
    const [source, second] = [await audio<string>('src'), await audio('currentTime')];
    expect(second).toBeGreaterThan(0);

    const signed: string[] = [];
    page.on('request', (request) => /\/recording\?/.test(request.url()) && signed.push(request.url()));
    await page.evaluate(`{
      const { now } = Date;
      Date.now = () => now() + 5 * 60_000;
      for (const name of ['offline', 'online']) window.dispatchEvent(new Event(name));
    }`);
    await page.evaluate("fetch('/healthz')");
    expect(signed).toEqual([]);

    // Within the same second, the server signs the same URL.
    const expiresAt = Number(new URL(source).searchParams.get('expires'));
    await eventually(async () => expect(Date.now() / 1000).toBeGreaterThan(expiresAt - 299));
    await audio("dispatchEvent(new Event('error'))");
    await eventually(async () => expect(await audio('src')).not.toBe(source));
    await eventually(async () => expect(await audio('currentTime')).toBe(second));
    expect(await audio('playbackRate')).toBe(0.75);
  });

  it('stays on the page when a recording comes from a bucket', async () => {
    await open(talked.call_id, '?tab=recording');
    await page.getByLabel('Download', { exact: true }).waitFor();
    const inBucket = town.url.replace('127.0.0.1', 'localhost');
    await page.route(/\/recording\?/, async (route) => {
      const response = await route.fetch();
      const answer = await response.json();
      answer.data.recording.playback_url = `${inBucket}/healthz`;
      await route.fulfill({ response, json: answer });
    });
    const [opened] = await Promise.all([
      page.waitForEvent('popup'),
      page.getByLabel('Download', { exact: true }).click(),
    ]);
    expect(new URL(page.url()).origin).toBe(town.url);
    await opened.close();
    await page.unrouteAll();
  });

  it('downloads the recording, also after its URL has expired', async () => {
    let valid = '';
    await page.route(
      /\/recording\?/,
      async (route) => {
        const response = await route.fetch();
        const body = await response.json();
        valid = body.data.recording.playback_url;
        body.data.recording.playback_url = valid.replace(/expires=\d+/, 'expires=1');
        await route.fulfill({ response, json: body });
      },
      { times: 1 },
    );
    // The player has loaded it while it was valid.
    await page.route(/expires=1&/, (route) => route.continue({ url: valid }));
    await open(talked.call_id, '?tab=recording');
    await untilLoaded();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByLabel('Download', { exact: true }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/\.wav$/);
    expect(await download.failure()).toBeNull();
    await page.unrouteAll();
  });

  it('says that the recording cannot be played when its URL cannot be renewed', async () => {
    await open(talked.call_id, '?tab=recording');
    await untilLoaded();
    await refuse(page, /\/recording$/, { status: 403, code: 'FORBIDDEN', message: 'Not any more.' });
    await audio("dispatchEvent(new Event('error'))");
    await page.getByText('The audio could not be played').waitFor();
    await page.unrouteAll();
    await audio("dispatchEvent(new Event('error'))");
    await page.getByText('The audio could not be played').waitFor({ state: 'detached' });
  });

  it('loads a recording again whose URL was renewed within the second that signed it', async () => {
    const signed = page.waitForResponse(/\/recording\?/);
    await open(talked.call_id, '?tab=recording');
    const json = await (await signed).json();
    await untilLoaded();
    await page.route(/\/recording\?/, (route) => route.fulfill({ json }));
    await audio("addEventListener('loadedmetadata', ({ target }) => { target.title = 'again'; })");
    await audio("dispatchEvent(new Event('error'))");
    await eventually(async () => expect(await audio('title')).toBe('again'));
    await page.unroute(/\/recording\?/);
  });

  it('shows a hostile transcript as text', async () => {
    const segment = { leg: 'customer', role: 'customer', start: 0, end: 1, confidence: 1, language: 'en' };
    const words = [{ word: HOSTILE, start: 0, end: 1, confidence: 1 }];
    const data = { call_id: talked.call_id, status: 'completed', error: null, language: 'en' };
    await page.route(/\/transcript\?/, (route) =>
      route.fulfill({ json: { success: true, data: { ...data, segments: [{ ...segment, text: HOSTILE, words }] } } }),
    );
    await open(talked.call_id, '?tab=recording');
    await page.getByText(HOSTILE, { exact: false }).waitFor();
    await page.unroute(/\/transcript\?/);
  });

  it('draws the media quality over time', async () => {
    await eventually(async () => {
      const { legs } = await town.api.get<{ legs: unknown[] }>(`/dialer/click2call/${talked.call_id}/quality`);
      expect(legs).toHaveLength(2);
    });
    await open(talked.call_id, '?tab=quality');
    await page
      .getByRole('img', { name: /^MOS .* over time, of Agent, Customer$/ })
      .locator('canvas')
      .waitFor();
    await expectPresentable(page, 'call-quality');
  });

  it('shows each attempt of a callback, and sends it again after a confirmation', async () => {
    await eventually(() => expect(receiver.requests).toHaveLength(1));
    await open(talked.call_id, '?tab=callbacks');
    await page.getByText('HTTP 204').waitFor();
    await expectPresentable(page, 'call-callbacks');
    await page.getByRole('button', { name: 'Send again' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
    await eventually(() => expect(receiver.requests).toHaveLength(2));
    const [first, second] = receiver.requests.map(({ headers }) => headers['webhook-id']);
    expect(second).toBe(first);
    await page.getByText('Callback, Replay').waitFor();
  });

  it('shows all deliveries of a call that has more than one page of them', async () => {
    const path = `/dialer/click2call/${talked.call_id}/deliveries`;
    const list = () => town.api.get<{ deliveries: { id: string }[] }>(path);
    const [first] = (await list()).deliveries;
    await town.api.post(`${path}/${first!.id}/replay`);
    const { deliveries } = await list();
    await page.route(/\/deliveries\?/, (route) =>
      route.continue({ url: route.request().url().replace('limit=100', 'limit=1') }),
    );
    await open(talked.call_id, '?tab=callbacks');
    const cards = page.getByRole('article');
    await cards.first().waitFor();
    expect(await cards.count()).toBe(deliveries.length);
    await page.unrouteAll();
  });

  it('shows a delivery once when a newer one moves it to the next page meanwhile', async () => {
    await page.route(/\/deliveries\?/, async (route) => {
      const url = route.request().url().replace('limit=100', 'limit=1').replace('page=2', 'page=1');
      const response = await route.fetch({ url });
      const answer = await response.json();
      answer.data.pagination.pages = 2;
      await route.fulfill({ response, json: answer });
    });
    await open(talked.call_id, '?tab=callbacks');
    const cards = page.getByRole('article');
    await cards.first().waitFor();
    expect(await cards.count()).toBe(1);
    await page.unrouteAll();
  });

  it('shows what the call reserved and cost', async () => {
    await open(talked.call_id, '?tab=ledger');
    await page.getByText('Charged for the talk').waitFor();
    await expectPresentable(page, 'call-ledger');
  });

  it('shows all ledger entries of a call that has more than one page of them', async () => {
    const { entries } = await town.api.get<{ entries: object[] }>(`/dialer/click2call/${talked.call_id}/ledger`);
    await page.route(/\/ledger\?/, (route) =>
      route.continue({ url: route.request().url().replace('limit=100', 'limit=1') }),
    );
    await open(talked.call_id, '?tab=ledger');
    const rows = page.getByRole('table').getByRole('row');
    await rows.nth(1).waitFor();
    expect(await rows.count()).toBe(entries.length + 1);
    await page.unrouteAll();
  });

  it('follows a live call, and hangs it up after a confirmation', async () => {
    const { call_id: id } = await town.place();
    await open(id);
    await page.getByText('Talking', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Mute customer' }).click();
    await page.getByRole('button', { name: 'Unmute customer' }).waitFor();
    await page.getByText('call.muted').waitFor();
    await expectPresentable(page, 'call-live');
    await page.getByRole('button', { name: 'Hang up' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Hang up' }).click();
    await page.getByText('Completed', { exact: true }).waitFor();
    await town.untilState(id, 'completed');
    await page.getByText('Call completed', { exact: true }).waitFor();
  });

  it('opens a call by its reference, and says what is missing', async () => {
    await town.place({ reference_id: 'order-7' }).then(({ call_id: id }) => town.untilState(id, 'bridged'));
    town.agent.hangup();
    await open('order-7', '?tab=recording');
    await page.getByText('Not recorded', { exact: true }).waitFor();
    await page.getByText(/^No transcript/).waitFor();
    await tab('Callbacks').click();
    await page.getByText('No callbacks', { exact: true }).waitFor();
    await expectAccessible(page);
    await open('there-is-no-such-call');
    await page.getByText('Page not found', { exact: true }).waitFor();
  });

  it('lets a viewer look and change nothing', async () => {
    const viewer = await page.context().newPage();
    await actAs(viewer, 'viewer');
    const { call_id: id } = await town.place();
    await open(id, '', viewer);
    await viewer.getByText('Talking', { exact: true }).waitFor();
    expect(await viewer.getByRole('button', { name: /Hang up|Mute|hold|Transfer/ }).count()).toBe(0);
    expect(await viewer.getByRole('tab', { name: /SIP|Ledger/ }).count()).toBe(0);
    town.customer.hangup();
    await viewer.getByText('Completed', { exact: true }).waitFor();
    await viewer.close();
  });

  it('says why something cannot be shown, and tries again', async () => {
    await refuse(page, /\/events$/, { status: 500, code: 'INTERNAL_ERROR', message: 'The database is down.' });
    await refuse(page, /\/ledger$/, { status: 403, code: 'FORBIDDEN', message: 'Owners only.' });
    await open(talked.call_id);
    await page.getByText('The database is down.').waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Both parties talk', { exact: true }).waitFor();
    await refuse(page, /\/ledger$/, { status: 403, code: 'FORBIDDEN', message: 'Owners only.' });
    await tab('Ledger').click();
    await page.getByText('Owners only.').waitFor();
    await page.unrouteAll();
  });
});
