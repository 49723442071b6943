import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import { findWorker } from '../../media/webrtc/worker-binary.ts';
import { eventually } from '../eventually.ts';
import { callOf, cleanUp } from '../process/ready-server.ts';
import {
  canBrowse,
  errorsOf,
  expectAccessible,
  expectPresentable,
  HOSTILE,
  isPwned,
  picture,
} from './console-fixture.ts';
import { CUSTOMER_HZ, untilTone } from './phone-fixture.ts';
import { actAs, refuse, startTalkingTown, type TalkingTown } from './talking-town.ts';

describe.skipIf(!canBrowse)('the live page of the console', () => {
  let town: TalkingTown;
  let page: Page;

  beforeAll(async () => {
    // The agent speaks; the customer is a tone, to be found again by its frequency.
    town = await startTalkingTown({ customer: { audio: { kind: 'tone', frequencyHz: CUSTOMER_HZ } } });
    page = await town.signedIn({ viewport: { width: 1280, height: 900 } });
  });
  afterAll(cleanUp);
  beforeEach(async () => {
    await page.goto(`${town.url}/console/live`);
    await page.getByText('No calls right now').waitFor();
  });
  afterEach(async () => {
    expect(errorsOf(page)).toEqual([]);
    expect(await isPwned(page)).toBe(false);
    await hangUpAll();
  });

  const rowOf = (on = page) => on.getByRole('list', { name: 'Live calls' }).getByRole('listitem');
  const justEnded = (on = page) => on.getByRole('region', { name: 'Just ended' });

  async function fillPlacement({ agent = town.agent.user, customer = town.customer.user } = {}): Promise<void> {
    await page.getByRole('button', { name: 'Place a call' }).first().click();
    await page.getByRole('textbox', { name: 'Agent' }).fill(agent);
    await page.getByRole('textbox', { name: 'Customer' }).fill(customer);
  }

  /** Calls that a failed test left. */
  async function hangUpAll(): Promise<void> {
    const { calls } = await town.api.get<{ calls: PublicCall[] }>('/dialer/click2call');
    const live = calls.filter(({ call_done: isDone }) => !isDone);
    for (const { call_id: id } of live) await town.api.post(`/dialer/click2call/${id}/hangup`);
  }

  async function hangUp(): Promise<void> {
    await rowOf().getByRole('button', { name: 'Hang up' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Hang up' }).click();
    await page.getByText('No calls right now').waitFor();
  }

  it('repeats a placement under its key until the server has refused or answered it, or the dialog closes', async () => {
    const answers = [
      { status: 504, code: 'GATEWAY_TIMEOUT', mayBePlaced: true },
      { status: 409, code: 'IDEMPOTENCY_IN_PROGRESS', mayBePlaced: true },
      { status: 403, code: 'CALLER_ID_NOT_OWNED', mayBePlaced: false },
      { status: 503, code: 'SHUTTING_DOWN', mayBePlaced: false },
      { status: 504, code: 'GATEWAY_TIMEOUT', mayBePlaced: true },
      { status: 504, code: 'GATEWAY_TIMEOUT', mayBePlaced: true },
    ];
    const keys: (string | undefined)[] = [];
    await page.route(/\/dialer\/click2call\?/, async (route) => {
      keys.push(route.request().headers()['idempotency-key']);
      const { status, code } = answers[keys.length - 1]!;
      await route.fulfill({ status, json: { success: false, code, message: `answer ${keys.length}` } });
    });
    const dialog = page.getByRole('dialog');
    await fillPlacement();
    for (const [index, { mayBePlaced }] of answers.entries()) {
      if (index === 5) {
        await dialog.getByRole('button', { name: 'Cancel' }).click();
        await dialog.waitFor({ state: 'hidden' });
        await fillPlacement();
      }
      await dialog.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByText(`answer ${index + 1}`).waitFor();
      expect(await dialog.getByText('The call may have been placed.').count()).toBe(mayBePlaced ? 1 : 0);
    }
    await page.unroute(/\/dialer\/click2call\?/);
    expect(keys).toEqual([keys[0], keys[0], keys[0], keys[3], keys[3], keys[5]]);
    expect(new Set(keys).size).toBe(3);
  });

  it('says how to begin while there are no calls', async () => {
    await page.getByText('No calls right now').waitFor();
    await expectAccessible(page);
    await picture(page, 'live-empty');
  });

  it('places a call, and shows it live in two tabs with its time, levels and words, until it is hung up', async () => {
    const other = await page.context().newPage();
    await other.goto(`${town.url}/console/live?state=talking`);
    await fillPlacement();
    await page.getByRole('switch', { name: 'Transcribe' }).check();
    await page.getByRole('switch', { name: 'Record' }).check();
    await picture(page, 'live-place');
    await expectAccessible(page);
    await page.getByRole('dialog').getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByText('The call was placed.').waitFor();
    for (const tab of [page, other]) await rowOf(tab).getByText('Talking', { exact: true }).waitFor();

    const time = rowOf().getByRole('timer', { name: 'Talk time' });
    const shown = await time.textContent();
    await eventually(async () => expect(await time.textContent()).not.toBe(shown));
    for (const tab of [page, other]) {
      const level = rowOf(tab).getByRole('meter', { name: 'Level of the customer' });
      await eventually(async () => expect(Number(await level.getAttribute('aria-valuenow'))).toBeGreaterThan(-40));
    }
    const agentLevel = rowOf().getByRole('meter', { name: 'Level of the agent' });
    await eventually(async () => expect(await agentLevel.getAttribute('aria-valuetext')).toBe('speaking'));
    await eventually(async () => expect(await agentLevel.getAttribute('aria-valuetext')).toBe('silent'));
    await rowOf()
      .getByText(/^MOS [1-5]/)
      .first()
      .waitFor();
    await rowOf().getByRole('list', { name: 'Last words' }).getByRole('listitem').first().waitFor();
    await expectPresentable(page, 'live-talking');

    await hangUp();
    await town.agent.until('bye');
    for (const tab of [page, other]) await justEnded(tab).getByText('Completed').waitFor();
    await other.close();
  });

  it('mutes and holds a party by one click, and shows what the server did', async () => {
    const { call_id: id } = await town.place();
    const legOf = async (leg: string) => (await callOf(town, id)).legs.find(({ leg_id: name }) => name === leg);
    await rowOf().getByRole('button', { name: 'Mute agent' }).click();
    await rowOf().getByRole('button', { name: 'Unmute agent' }).waitFor();
    expect((await legOf('agent'))?.muted).toBe(true);
    await rowOf().getByRole('button', { name: 'Put customer on hold' }).click();
    await rowOf().getByRole('button', { name: 'Take customer off hold' }).click();
    await rowOf().getByRole('button', { name: 'Put customer on hold' }).waitFor();
    expect((await legOf('customer'))?.state).toBe('answered');
    await hangUp();
  });

  it('opens the transfer form, and shows why the target was refused', async () => {
    await town.place();
    await rowOf().getByRole('button', { name: 'Transfer' }).click();
    await page.getByRole('dialog').getByRole('textbox', { name: 'Transfer to' }).fill('12');
    await picture(page, 'live-transfer');
    await page.getByRole('dialog').getByRole('button', { name: 'Transfer', exact: true }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await hangUp();
  });

  it('offers to end a transfer that was in progress when the page was loaded', async () => {
    const { call_id: id } = await town.place();
    await town.untilState(id, 'bridged');
    const endpoint = { type: 'phone', number: town.agent.user };
    await town.api.post(`/dialer/click2call/${id}/transfer`, { leg: 'agent', mode: 'attended', endpoint });
    const target = expect.objectContaining({ role: 'party', state: 'answered' });
    await eventually(async () => expect((await callOf(town, id)).legs).toContainEqual(target));
    await page.reload();
    await rowOf().getByRole('button', { name: 'Complete transfer' }).waitFor();
    expect(await rowOf().getByRole('button', { name: 'Transfer', exact: true }).count()).toBe(0);
    await rowOf().getByRole('button', { name: 'Cancel transfer' }).click();
    await rowOf().getByRole('button', { name: 'Transfer', exact: true }).waitFor();
    await hangUp();
  });

  it.skipIf(findWorker().path === null)('listens in from the browser, and leaves', async () => {
    const { call_id: id } = await town.place();
    await rowOf().getByRole('button', { name: 'Listen' }).click();
    await picture(page, 'live-listen');
    await page.getByRole('dialog').getByRole('button', { name: 'Listen' }).click();
    await page.getByText('You hear both. They do not hear you.').waitFor();
    await untilTone(page, CUSTOMER_HZ);
    await rowOf().getByText('A supervisor listens').waitFor();
    await page.evaluate(BLOCK_MICROPHONE_ONCE);
    await rowOf().getByRole('button', { name: 'Barge in' }).click();
    await page.getByText('allow the microphone for this page').waitFor();
    await untilTone(page, CUSTOMER_HZ);
    await rowOf().getByRole('button', { name: 'Barge in' }).click();
    await rowOf().getByText('A supervisor talks along').waitFor();
    expect(await page.evaluate('microphoneRequests')).toBe(2);
    await picture(page, 'live-supervised');
    await page.getByRole('button', { name: 'Leave' }).click();
    await rowOf().getByText('A supervisor talks along').waitFor({ state: 'detached' });
    expect((await callOf(town, id)).state).toBe('bridged');
    await hangUp();
  });

  it.skipIf(findWorker().path === null)('turns off a microphone that is allowed after the call has ended', async () => {
    await town.place();
    await rowOf().getByRole('button', { name: 'Listen' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Listen' }).click();
    await page.getByText('You hear both. They do not hear you.').waitFor();
    await untilTone(page, CUSTOMER_HZ);
    await page.evaluate(ASK_FOR_MICROPHONE);
    await rowOf().getByRole('button', { name: 'Barge in' }).click();
    await eventually(async () => expect(await page.evaluate('typeof allowMicrophone')).toBe('function'));
    town.customer.hangup();
    await page.getByRole('region', { name: 'Supervision' }).waitFor({ state: 'detached' });
    await page.evaluate('allowMicrophone()');
    await eventually(async () => expect(await page.evaluate('microphone.readyState')).toBe('ended'));
  });

  it('shows why a call was refused, with what to do', async () => {
    const blocked = '+919833333333';
    await town.api.post('/dialer/do-not-call', { numbers: [blocked] });
    await fillPlacement({ customer: blocked });
    const call = page.getByRole('dialog').getByRole('button', { name: 'Call', exact: true });
    await call.click();
    await page.getByText('Call only if it was removed from it.', { exact: false }).waitFor();
    await page.getByRole('textbox', { name: 'Customer' }).fill(town.customer.user);
    await refuse(page, /\/click2call$/, { status: 402, code: 'ZERO_BALANCE', message: 'The wallet has no money.' });
    await call.click();
    await page.getByText('The wallet has no money.').waitFor();
    expect(await page.getByRole('link', { name: 'Open the wallet' }).getAttribute('href')).toContain('/wallet');
    await picture(page, 'live-refused');
    await expectAccessible(page);
    await page.unrouteAll();
    await page.getByText('More options').click();
    await page.getByLabel('Metadata').fill('[1]');
    await call.click();
    await page
      .getByRole('dialog')
      .getByRole('alert')
      .getByText('Metadata must be a JSON object', { exact: false })
      .waitFor();
    await page.keyboard.press('Escape');
  });

  it('shows whatever strangers send as text', async () => {
    const { call_id: id } = await town.place();
    const call = { ...(await town.untilState(id, 'bridged')), call_id: 'call_hostile' };
    const legs = call.legs.map((leg) => ({ ...leg, endpoint: { type: 'phone', number: HOSTILE } }));
    const live = { ...call, legs, sequence: 1, price_per_minute_usd: 1, cost_so_far_usd: 0 };
    const spoken = { call_id: live.call_id, leg: 'agent', role: 'agent', is_final: true, start: 0, end: 1 };
    const frames = [
      `retry: 600000\nevent: snapshot\ndata: ${JSON.stringify({ calls: [live], truncated: false })}\n\n`,
      `event: transcript\ndata: ${JSON.stringify({ ...spoken, text: HOSTILE })}\n\n`,
    ];
    const stranger = await page.context().newPage();
    await stranger.route(/\/dialer\/stream\?/, (route) =>
      route.fulfill({ contentType: 'text/event-stream', body: frames.join('') }),
    );
    await stranger.goto(`${town.url}/console/live`);
    await eventually(async () => expect(await stranger.getByText(HOSTILE, { exact: false }).count()).toBe(3));
    expect(await isPwned(stranger)).toBe(false);
    await stranger.close();
    await hangUp();
  });

  it('lets a viewer watch and change nothing', async () => {
    const viewer = await page.context().newPage();
    await actAs(viewer, 'viewer');
    await viewer.goto(`${town.url}/console/live`);
    await viewer.getByText('No calls right now').waitFor();
    await town.place();
    await rowOf(viewer).getByText('Talking', { exact: true }).waitFor();
    expect(await viewer.getByRole('button', { name: /Place|Hang up|Mute|Listen|Transfer/ }).count()).toBe(0);
    await viewer.close();
    await hangUp();
  });

  it('shows the calls of the workspace that the user switches to', async () => {
    const enter = async (name: string) => {
      await page.getByRole('button', { name: /^Account/ }).click();
      await page.getByRole('menuitem', { name, exact: true }).click();
    };
    const created = await page.request.post(`${town.url}/workspaces`, {
      headers: { origin: town.url },
      data: { name: 'Second' },
    });
    expect(created.status()).toBe(201);
    await page.reload();
    await town.place();
    await rowOf().getByText('Talking', { exact: true }).waitFor();
    await enter('Second');
    await page.getByText('No calls right now').waitFor();
    expect(await justEnded().count()).toBe(0);
    await enter('Default');
    await rowOf().getByText('Talking', { exact: true }).waitFor();
    await hangUp();
  });

  it('shows the outcome of a call that ended while the page had no connection', async () => {
    const { call_id: id } = await town.place();
    await rowOf().getByText('Talking', { exact: true }).waitFor();
    const { call } = await town.api.get<{ call: object }>(`/dialer/click2call/${id}`);
    const other = await page.context().newPage();
    const ended = Promise.withResolvers<void>();
    let isConnected = false;
    await other.route(/\/dialer\/stream/, async (route) => {
      const running = { ...call, sequence: 1, price_per_minute_usd: 0, cost_so_far_usd: 0 };
      if (isConnected) await ended.promise;
      const snapshot = { calls: isConnected ? [] : [running], truncated: false };
      isConnected = true;
      const body = `retry: 50\nevent: snapshot\ndata: ${JSON.stringify(snapshot)}\n\n`;
      await route.fulfill({ contentType: 'text/event-stream', body });
    });
    await other.goto(`${town.url}/console/live`);
    await rowOf(other).getByText('Talking', { exact: true }).waitFor();
    await hangUp();
    ended.resolve();
    await justEnded(other).getByText('Completed', { exact: true }).waitFor();
    expect(await justEnded(other).getByText('Talking', { exact: true }).count()).toBe(0);
    await other.close();
  });

  it('stays in the workspace of its tab when the page is loaded again after a switch in another tab', async () => {
    const other = await page.context().newPage();
    await other.goto(`${town.url}/console/live`);
    await other.getByRole('button', { name: /, Default$/ }).click();
    await other.getByRole('menuitem', { name: 'Second', exact: true }).click();
    await other.getByRole('button', { name: /, Second$/ }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: /, Default$/ }).waitFor();
    await other.reload();
    await other.getByRole('button', { name: /, Second$/ }).waitFor();
    await other.close();
  });

  it('says that it is offline while the server restarts, and catches up', async () => {
    const { call_id: before } = await town.place();
    await rowOf().getByText('Talking', { exact: true }).waitFor();
    const stopped = town.stop();
    await page.getByText('Offline. Reconnecting to the server.').waitFor();
    await picture(page, 'live-offline');
    await stopped;
    await town.start();
    await page.getByText('Offline. Reconnecting to the server.').waitFor({ state: 'detached' });
    await justEnded().locator(`a[href$="${before}"]`).waitFor();
    await town.place();
    await rowOf().getByText('Talking', { exact: true }).waitFor();
    await hangUp();
  });
});

/** Rejects the next request of the page for the microphone, and counts the requests. */
const BLOCK_MICROPHONE_ONCE = `
  const devices = navigator.mediaDevices;
  const open = devices.getUserMedia.bind(devices);
  window.microphoneRequests = 0;
  devices.getUserMedia = (wanted) => {
    window.microphoneRequests += 1;
    return window.microphoneRequests === 1 ? Promise.reject(new DOMException('', 'NotAllowedError')) : open(wanted);
  };
`;

/** Opens the microphone when the user allows it. */
const ASK_FOR_MICROPHONE = `
  navigator.mediaDevices.getUserMedia = (wanted) => new Promise((resolve) => {
    window.allowMicrophone = async () => {
      delete navigator.mediaDevices.getUserMedia;
      const stream = await navigator.mediaDevices.getUserMedia(wanted);
      window.microphone = stream.getAudioTracks()[0];
      resolve(stream);
    };
  });
`;
