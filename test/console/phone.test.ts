import type { Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { findWorker } from '../../media/webrtc/worker-binary.ts';
import { nextLevel, untilLevel } from '../calls/next-level.ts';
import { eventually } from '../eventually.ts';
import { callOf, cleanUp } from '../process/ready-server.ts';
import { canBrowse, errorsOf, expectAccessible, expectFits, HOSTILE, isPwned, picture } from './console-fixture.ts';
import {
  COLLEAGUE_HZ,
  CUSTOMER_HZ,
  goAvailable,
  MICROPHONE_HZ,
  type PhoneTown,
  startPhoneTown,
  untilNoTone,
  untilTone,
} from './phone-fixture.ts';

/** Lets a test lose a connection. */
const KEEP_SOCKETS = `globalThis.sockets = [];
globalThis.WebSocket = class extends WebSocket {
  constructor(...options) {
    super(...options);
    sockets.push(this);
  }
};
globalThis.peers = [];
globalThis.RTCPeerConnection = class extends RTCPeerConnection {
  constructor(...options) {
    super(...options);
    peers.push(this);
  }
  get connectionState() {
    return this.isCutOff ? 'disconnected' : super.connectionState;
  }
};`;

/** Lets a test unplug a microphone, and answer for the user whom the browser asks for one: `allow()`. */
const KEEP_MICROPHONES = `globalThis.microphones = [];
globalThis.permission = Promise.resolve();
const openMicrophone = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wanted) => {
  const stream = await openMicrophone(wanted);
  await permission;
  microphones.push(stream.getAudioTracks()[0]);
  return stream;
};`;

const ASK_USER = 'void (permission = new Promise((resolve) => (globalThis.allow = resolve)))';
/** Whether the latest microphone reduces noise and echo. */
const IS_PROCESSED = 'microphones.at(-1).getSettings().echoCancellation';

const UNPLUG = `{
  microphones.at(-1).stop();
  microphones.at(-1).dispatchEvent(new Event('ended'));
}`;

/** The next request of this type waits for `goOn()`. */
const pauseAt = (type: string) => `{
  const socket = sockets.at(-1);
  const send = socket.send.bind(socket);
  globalThis.goOn = null;
  socket.send = (text) => {
    if (JSON.parse(text).type !== '${type}') return send(text);
    socket.send = send;
    globalThis.goOn = () => send(text);
  };
}`;

const IS_PAUSED = 'goOn !== null';

/** Loses the socket, and with it the next request of this type. */
const loseSocketAt = (type: string) => `{
  const socket = sockets.at(-1);
  const send = socket.send.bind(socket);
  socket.send = (text) => (JSON.parse(text).type === '${type}' ? socket.close() : send(text));
}`;

/** Refuses the next request of this type, as for a call on a node that does not answer. */
const refuse = (type: string) => `{
  const socket = sockets.at(-1);
  const send = socket.send.bind(socket);
  socket.send = (text) => {
    const { id, type } = JSON.parse(text);
    if (type !== '${type}') return send(text);
    socket.send = send;
    socket.onmessage({ data: JSON.stringify({ id, type: 'error', code: 'NODE_UNREACHABLE', message: '' }) });
  };
}`;

/** The audio is cut off, and the socket is lost when the page uses it to repair the audio. */
const LOSE_NETWORK = `{
  ${loseSocketAt('restart_ice')}
  for (const peer of peers.slice(-2)) {
    peer.isCutOff = true;
    peer.dispatchEvent(new Event('connectionstatechange'));
  }
}`;

/** The server forgets the phone, and closes its socket. */
const BE_FORGOTTEN = `sockets.at(-1).send('{"id":"last","type":"bye"}')`;

const isPossible = canBrowse && findWorker().path !== null;

/** Needs Debian's chromium, and mediasoup's worker, which `npm ci` fetches where the network allows it. */
describe.skipIf(!isPossible)('the phone in the console', () => {
  let town: PhoneTown;
  let page: Page;

  beforeAll(async () => {
    town = await startPhoneTown();
    page = await town.signedIn();
    await page.addInitScript(KEEP_SOCKETS);
    await page.addInitScript(KEEP_MICROPHONES);
    const second = { headers: { origin: town.url }, data: { name: 'Second' } };
    expect((await page.request.post(`${town.url}/workspaces`, second)).status()).toBe(201);
    await goAvailable(page, town);
  });
  afterAll(cleanUp);
  afterEach(() => expect(errorsOf(page)).toEqual([]));

  const button = (name: string, on = page) => on.getByRole('button', { name, exact: true });
  const customerHears = (frequencyHz: number) => nextLevel(town.customer, frequencyHz);
  const ended = (on = page) => on.getByText(/^Call ended/).waitFor();

  async function enter(workspace: string): Promise<void> {
    await page.getByRole('button', { name: /^Account/ }).click();
    await page.getByRole('menuitem', { name: workspace, exact: true }).click();
  }

  /** The browser has answered, and the customer who is rung then. */
  async function talk(on = page): Promise<string> {
    const callId = await town.ringBrowser();
    await button('Answer', on).click();
    await on.getByText('Talking', { exact: true }).waitFor();
    return callId;
  }

  async function hangUp(callId: string): Promise<void> {
    await button('Hang up').click();
    await ended();
    const ending = { state: 'completed', hangup_cause: 'NORMAL_CLEARING' };
    await eventually(async () => expect(await callOf(town, callId)).toMatchObject(ending));
  }

  async function customerHangsUp(on = page): Promise<void> {
    town.customer.hangup();
    await ended(on);
  }

  it('rings visibly, answers, and connects both parties', async () => {
    const callId = await town.ringBrowser();
    await page.getByText('Incoming call', { exact: true }).waitFor();
    await page.getByText(town.customer.user).waitFor();
    expect(await page.title()).toContain('Incoming call');
    await expectAccessible(page);
    await picture(page, 'phone-ringing');
    await button('Answer').click();
    await page.getByText('Talking', { exact: true }).waitFor();
    await untilTone(page, CUSTOMER_HZ);
    expect(await customerHears(MICROPHONE_HZ)).toBeGreaterThan(-30);
    await page.getByRole('timer').waitFor();
    await page.getByText(/(Good|Fair|Poor) network/).waitFor();
    await expectAccessible(page);
    await expectFits(page);
    await picture(page, 'phone-talking');
    await hangUp(callId);
  });

  it('rejects a call', async () => {
    const callId = await town.ringBrowser();
    await button('Reject').click();
    await page.getByText('Call ended: Rejected').waitFor();
    await eventually(async () =>
      expect(await callOf(town, callId)).toMatchObject({ call_done: true, hangup_cause: 'CALL_REJECTED' }),
    );
  });

  it('silences the microphone for the customer, and turns it on again', async () => {
    await talk();
    await button('Mute').click();
    await button('Unmute').waitFor();
    expect(await customerHears(MICROPHONE_HZ)).toBeLessThan(-60);
    await untilTone(page, CUSTOMER_HZ);
    await page.keyboard.press('Alt+m');
    await button('Mute').waitFor();
    expect(await customerHears(MICROPHONE_HZ)).toBeGreaterThan(-30);
    await customerHangsUp();
  });

  it('sends another microphone when the first is unplugged while the call connects', async () => {
    await town.ringBrowser();
    await page.evaluate(pauseAt('answer'));
    await button('Answer').click();
    await eventually(async () => expect(await page.evaluate(IS_PAUSED)).toBe(true));
    const known = await page.evaluate<number>('microphones.length');
    await page.evaluate(UNPLUG);
    await eventually(async () => expect(await page.evaluate('microphones.length')).toBe(known + 1));
    await page.evaluate('goOn()');
    await page.getByText('Talking', { exact: true }).waitFor();
    await untilLevel(town.customer, MICROPHONE_HZ, { above: -30 });
    await customerHangsUp();
  });

  it('uses the microphone settings that are changed while a call connects', async () => {
    const processing = page.getByRole('switch', { name: 'Reduce noise and echo' });
    await town.ringBrowser();
    await page.evaluate(ASK_USER);
    await page.evaluate(pauseAt('answer'));
    await button('Answer').click();
    await page.getByText('Allow the microphone', { exact: false }).waitFor();
    await processing.check({ force: true });
    await page.evaluate('allow()');
    await eventually(async () => expect(await page.evaluate(IS_PAUSED)).toBe(true));
    expect(await page.evaluate(IS_PROCESSED)).toBe(true);
    await processing.uncheck({ force: true });
    await eventually(async () => expect(await page.evaluate(IS_PROCESSED)).toBe(false));
    await page.evaluate('goOn()');
    await page.getByText('Talking', { exact: true }).waitFor();
    await untilLevel(town.customer, MICROPHONE_HZ, { above: -30 });
    await customerHangsUp();
  });

  it('holds the customer, who hears music instead, and resumes', async () => {
    const callId = await talk();
    await untilTone(page, CUSTOMER_HZ);
    await button('Hold').click();
    await page.getByText('On hold', { exact: false }).waitFor();
    await untilNoTone(page, CUSTOMER_HZ);
    expect(await customerHears(MICROPHONE_HZ)).toBeLessThan(-60);
    expect((await callOf(town, callId)).legs).toContainEqual(
      expect.objectContaining({ leg_id: 'customer', state: 'held' }),
    );
    await picture(page, 'phone-hold');
    await page.keyboard.press('Alt+o');
    await untilTone(page, CUSTOMER_HZ);
    expect(await customerHears(MICROPHONE_HZ)).toBeGreaterThan(-30);
    await customerHangsUp();
  });

  it('sends keys that are clicked and typed, in their order', async () => {
    await talk();
    await button('Keypad').click();
    await button('Key 4').click();
    await page.keyboard.type('2#');
    await town.customer.untilReceived(({ digits }) => digits === '42#');
    expect(await page.getByRole('status', { name: 'Keys sent' }).textContent()).toBe('42#');
    await expectAccessible(page);
    await picture(page, 'phone-keypad');
    await customerHangsUp();
  });

  it('transfers the call blindly to a number', async () => {
    const callId = await talk();
    await button('Transfer').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Phone number' }).fill(town.agent.user);
    await expectAccessible(page);
    await picture(page, 'phone-transfer');
    await dialog.getByRole('button', { name: 'Transfer' }).click();
    await page.getByText('Call ended: Transferred').waitFor();
    expect(await customerHears(COLLEAGUE_HZ)).toBeGreaterThan(-30);
    await untilLevel(town.agent, CUSTOMER_HZ, { above: -30 });
    town.customer.hangup();
    await eventually(async () => expect((await callOf(town, callId)).call_done).toBe(true));
  });

  it('consults the target of a transfer, cancels, and completes a second one', async () => {
    const callId = await talk();
    const consult = async () => {
      await button('Transfer').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox', { name: 'Phone number' }).fill(town.agent.user);
      await dialog.getByRole('radio', { name: 'Attended' }).check();
      await dialog.getByRole('button', { name: 'Transfer' }).click();
      await page.getByText('Transfer: you talk with the target alone').waitFor();
      await untilTone(page, COLLEAGUE_HZ);
      await untilNoTone(page, CUSTOMER_HZ);
    };
    await consult();
    await picture(page, 'phone-consulting');
    await button('Cancel transfer').click();
    await untilTone(page, CUSTOMER_HZ);
    await consult();
    await button('Complete transfer').click();
    await page.getByText('Call ended: Transferred').waitFor();
    expect(await customerHears(COLLEAGUE_HZ)).toBeGreaterThan(-30);
    town.customer.hangup();
    await eventually(async () => expect((await callOf(town, callId)).call_done).toBe(true));
  });

  it('calls a number, and answers that call by itself', async () => {
    await page.getByRole('textbox', { name: 'Phone number' }).fill('98222 22222');
    await button('Call').click();
    await page.getByText('Talking', { exact: true }).waitFor();
    await untilTone(page, CUSTOMER_HZ);
    expect(await customerHears(MICROPHONE_HZ)).toBeGreaterThan(-30);
    await customerHangsUp();
  });

  it('shows why the server refuses a number', async () => {
    await page.getByRole('textbox', { name: 'Phone number' }).fill('112');
    await button('Call').click();
    await page.getByRole('alert').filter({ hasText: 'number' }).waitFor();
  });

  it('docks the call on another page, and keeps it when the user moves on', async () => {
    const callId = await talk();
    await page.getByRole('link', { name: 'Health' }).click();
    const dock = page.getByRole('region', { name: 'Call', exact: true });
    await dock.getByText(town.customer.user).waitFor();
    await untilTone(page, CUSTOMER_HZ);
    await expectAccessible(page);
    await expectFits(page, [360]);
    await picture(page, 'phone-dock');
    await dock.getByRole('button', { name: 'Mute' }).click();
    expect(await customerHears(MICROPHONE_HZ)).toBeLessThan(-60);
    await page.keyboard.press('Alt+x');
    await dock.waitFor({ state: 'hidden' });
    await eventually(async () => expect(await callOf(town, callId)).toMatchObject({ state: 'completed' }));
    await page.getByRole('link', { name: 'Phone', exact: true }).click();
  });

  it('keeps the call and the muted microphone when the page is loaded again', async () => {
    const callId = await talk();
    await untilTone(page, CUSTOMER_HZ);
    await button('Mute').click();
    await page.reload();
    await page.getByText('Talking', { exact: true }).waitFor();
    await untilTone(page, CUSTOMER_HZ);
    expect(await customerHears(MICROPHONE_HZ)).toBeLessThan(-60);
    await button('Unmute').click();
    expect(await customerHears(MICROPHONE_HZ)).toBeGreaterThan(-30);
    expect(await town.eventsOf(callId)).not.toContain('call.completed');
    await customerHangsUp();
  });

  it('keeps the microphone on when the page is loaded again after an earlier call was muted', async () => {
    await talk();
    await button('Mute').click();
    await button('Unmute').waitFor();
    await customerHangsUp();
    await talk();
    await button('Mute').waitFor();
    await page.reload();
    await page.getByText('Talking', { exact: true }).waitFor();
    await untilTone(page, CUSTOMER_HZ);
    expect(await customerHears(MICROPHONE_HZ)).toBeGreaterThan(-30);
    await customerHangsUp();
  });

  it('rings in two tabs, and stops in the one that does not answer', async () => {
    const other = await page.context().newPage();
    await goAvailable(other, town);
    await town.ringBrowser();
    await button('Answer', other).waitFor();
    await button('Answer').click();
    await other.getByText('Call ended: Answered on another phone of yours').waitFor();
    await page.getByText('Talking', { exact: true }).waitFor();
    await untilTone(page, CUSTOMER_HZ);
    await customerHangsUp();
    await other.close();
  });

  it('controls the call after the user has switched to another workspace', async () => {
    const callId = await talk();
    await untilTone(page, CUSTOMER_HZ);
    await page.reload();
    await page.getByText('Talking', { exact: true }).waitFor();
    await untilTone(page, CUSTOMER_HZ);
    await enter('Second');
    await page.getByRole('region', { name: 'Call', exact: true }).waitFor();
    await page.keyboard.press('Alt+o');
    await eventually(async () =>
      expect((await callOf(town, callId)).legs).toContainEqual(
        expect.objectContaining({ leg_id: 'customer', state: 'held' }),
      ),
    );
    town.customer.hangup();
    await page.getByRole('region', { name: 'Call', exact: true }).waitFor({ state: 'hidden' });
    await enter('Default');
    await page.getByRole('link', { name: 'Phone', exact: true }).click();
    await page.getByText('Ready for calls').waitFor();
  });

  it('offers the colleagues of the workspace of the call after the user has switched', async () => {
    const colleagues = [{ user_id: 998, name: 'Charles' }];
    const path = `**/phone/colleagues?*workspace_id=${town.workspaceId}*`;
    await page.route(path, (route) =>
      route.fulfill({ json: { success: true, data: { colleagues, pagination: { pages: 1 } } } }),
    );
    await talk();
    await enter('Second');
    const dock = page.getByRole('region', { name: 'Call', exact: true });
    await dock.getByRole('button', { name: 'Transfer' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('A colleague', { exact: true }).click();
    await dialog.getByRole('combobox', { name: 'Colleague' }).click();
    await page.getByRole('option', { name: 'Charles' }).waitFor();
    await page.keyboard.press('Escape');
    await button('Cancel').click();
    await page.unroute(path);
    town.customer.hangup();
    await dock.waitFor({ state: 'hidden' });
    await enter('Default');
    await page.getByRole('link', { name: 'Phone', exact: true }).click();
    await page.getByText('Ready for calls').waitFor();
  });

  it('rings in its workspace after the user was in another one while it connected anew', async () => {
    const asked = Promise.withResolvers<Route>();
    await talk();
    await enter('Second');
    await page.getByRole('region', { name: 'Call', exact: true }).waitFor();
    await page.route(/\/phone\/tokens/, (route) => asked.resolve(route), { times: 1 });
    await page.evaluate(BE_FORGOTTEN);
    const route = await asked.promise;
    await enter('Default');
    await page.getByRole('link', { name: 'Phone', exact: true }).click();
    await page.getByText('Reconnecting').waitFor();
    await route.continue();
    await page.getByText('Ready for calls').waitFor();
    await town.ringBrowser();
    await button('Reject').click();
    await page.getByText('Call ended: Rejected').waitFor();
  });

  it('keeps the call while its socket is lost, and hangs up over the next one', async () => {
    const callId = await talk();
    await untilTone(page, CUSTOMER_HZ);
    const next = page.waitForEvent('websocket');
    await page.evaluate('globalThis.sockets.at(-1).close()');
    expect((await next).url()).toContain('/ws/phone?resume=');
    await untilTone(page, CUSTOMER_HZ);
    expect(await customerHears(MICROPHONE_HZ)).toBeGreaterThan(-30);
    await hangUp(callId);
  });

  it('hangs up over the next socket when the request was lost with the socket', async () => {
    const callId = await talk();
    await untilTone(page, CUSTOMER_HZ);
    await page.evaluate(loseSocketAt('hangup'));
    await hangUp(callId);
  });

  it('hangs up although the node of the call does not answer the first request', async () => {
    const callId = await talk();
    await untilTone(page, CUSTOMER_HZ);
    await page.evaluate(refuse('hangup'));
    await hangUp(callId);
  });

  it('restarts ICE over the next socket when a change of network also loses the socket', async () => {
    await talk();
    await untilTone(page, CUSTOMER_HZ);
    const opening = page.waitForEvent('websocket');
    await page.evaluate(LOSE_NETWORK);
    const next = await opening;
    await next.waitForEvent('framesent', ({ payload }) => String(payload).includes('restart_ice'));
    await untilTone(page, CUSTOMER_HZ);
    expect(await customerHears(MICROPHONE_HZ)).toBeGreaterThan(-30);
    await customerHangsUp();
  });

  it('shows names of colleagues as text', async () => {
    const colleagues = [{ user_id: 999, name: HOSTILE }];
    await page.route(/\/colleagues\?/, (route) =>
      route.fulfill({ json: { success: true, data: { colleagues, pagination: { pages: 1 } } } }),
    );
    await talk();
    await button('Transfer').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('A colleague', { exact: true }).click();
    await dialog.getByRole('combobox', { name: 'Colleague' }).click();
    await page.getByRole('option', { name: HOSTILE }).waitFor();
    await page.keyboard.press('Escape');
    expect(await isPwned(page)).toBe(false);
    await button('Cancel').click();
    await customerHangsUp();
  });
});
