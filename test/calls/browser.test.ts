import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Page } from '../browser/chromium.ts';
import { untilNotPlayed, untilPlayed } from '../browser/page-tones.ts';
import { hasPhoneBrowser, openPhoneBrowser, type PhoneBrowser } from '../browser/phone-page.ts';
import { untilTruthy } from '../eventually.ts';
import { nextLevel } from './next-level.ts';
import { AGENT_HZ, CUSTOMER, CUSTOMER_HZ, type Platform, startPlatform } from './platform.ts';

const WHISPERER = '+919844444444';
const WHISPERER_HZ = 1250;

describe.skipIf(!hasPhoneBrowser)('call with an agent in a real browser', () => {
  let platform: Platform;
  let browser: PhoneBrowser;
  let page: Page;

  beforeAll(async () => {
    [platform, browser] = await Promise.all([startPlatform({ env: { WEBRTC_PORT: '0' } }), openPhoneBrowser(AGENT_HZ)]);
    page = await browser.chromium.open(browser.pageUrl);
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await platform[Symbol.asyncDispose]();
  });

  const run = <T>(expression: string, on = page) => on.evaluate<T>(`tests.${expression}`);

  async function connect(purpose: 'agent' | 'supervise' = 'agent', on = page): Promise<void> {
    const { status, body } = await platform.ask<{ url: string }>('POST', '/phone/tokens', { purpose });
    expect(status).toBe(201);
    await run(`connect(${JSON.stringify(body.data.url)})`, on);
    await run("until('welcome')", on);
  }

  async function answer(on = page): Promise<string> {
    const { call } = await run<{ call: { call_id: string } }>("until('incoming')", on);
    await run(`answer(${JSON.stringify(call.call_id)})`, on);
    return call.call_id;
  }

  async function talk(request: Record<string, unknown> = {}) {
    const audio = { kind: 'tone', frequencyHz: CUSTOMER_HZ } as const;
    const customer = await platform.phone(CUSTOMER, { audio });
    await connect();
    const { call_id: callId } = await platform.place({
      agent_number: undefined,
      agent_endpoint: { type: 'webrtc' },
      ...request,
    });
    await answer();
    await run("until('answered')");
    await platform.until(callId, 'call.bridged');
    const control = <Data>(method: string, path: string, body?: unknown) =>
      platform.ask<Data>(method, `/dialer/click2call/${callId}/${path}`, body);
    return { customer, callId, control };
  }

  const stream = 'tests.stream()';
  const untilTone = (frequencyHz: number, on = page) => untilPlayed({ page: on, stream }, frequencyHz);
  const untilNoTone = (frequencyHz: number) => untilNotPlayed({ page, stream }, frequencyHz);

  it('connects both, holds and resumes, and reports keys from the browser', async () => {
    const { customer, callId, control } = await talk();
    await untilTone(CUSTOMER_HZ);
    expect(await nextLevel(customer, AGENT_HZ)).toBeGreaterThan(-30);

    expect((await control('POST', 'hold', { leg: 'agent' })).status).toBe(200);
    await run("until('held')");
    await untilNoTone(CUSTOMER_HZ);
    expect(await nextLevel(customer, AGENT_HZ)).toBeLessThan(-60);
    expect((await control('POST', 'resume', { leg: 'agent' })).status).toBe(200);
    await run("until('resumed')");
    await untilTone(CUSTOMER_HZ);
    expect(await nextLevel(customer, AGENT_HZ)).toBeGreaterThan(-30);

    await run("request('dtmf', { digit: '7' })");
    await platform.until(callId, 'dtmf.received', ({ leg, data }) => leg === 'agent' && data?.digit === '7');
    await run("request('hangup')");
    const events = await platform.ended(callId);
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', hangup_cause: 'NORMAL_CLEARING' });
    const call = await platform.call(callId);
    expect(call).toMatchObject({ agent_number: null, legs: [{ leg_id: 'agent', endpoint: { type: 'webrtc' } }, {}] });
    expect(call.quality?.agent).toMatchObject({ codec: 'PCMU' });
    expect(call.quality?.agent?.packets_received).toBeGreaterThan(50);
    expect(customer.received().continuity.foreign).toBe(0);
  });

  it('survives a lost and resumed socket', async () => {
    const { customer, callId } = await talk();
    await untilTone(CUSTOMER_HZ);
    await run('dropSocket()');
    expect(await nextLevel(customer, AGENT_HZ)).toBeGreaterThan(-30);
    await run('comeBack()');
    expect(await run("until('welcome')")).toMatchObject({ call: { call_id: callId, state: 'answered' } });
    await untilTone(CUSTOMER_HZ);
    expect(await nextLevel(customer, AGENT_HZ)).toBeGreaterThan(-30);
    customer.hangup();
    expect(await run("until('ended')")).toMatchObject({ hangup_cause: 'NORMAL_CLEARING' });
    await platform.ended(callId);
  });

  it('survives a page reload', async () => {
    const { customer, callId } = await talk();
    await untilTone(CUSTOMER_HZ);
    await page.reload();
    await run('connect(tests.resumeUrl())');
    expect(await run("until('welcome')")).toMatchObject({ call: { call_id: callId, state: 'answered' } });
    await run(`answer(${JSON.stringify(callId)})`);
    await untilTone(CUSTOMER_HZ);
    expect(await nextLevel(customer, AGENT_HZ)).toBeGreaterThan(-30);
    await run("request('hangup')");
    const events = await platform.ended(callId);
    expect(events.at(-1)).toMatchObject({ event: 'call.completed', hangup_cause: 'NORMAL_CLEARING' });
    expect(customer.received().continuity.foreign).toBe(0);
  });

  it("survives a change of the browser's ports", async () => {
    const { customer, callId } = await talk();
    await untilTone(CUSTOMER_HZ);
    const before = await run<number[]>('ports()');
    await run('restartIce()');
    await untilTruthy(async () => {
      const ports = await run<(number | null)[]>('ports()');
      return ports.every((port, i) => port !== null && port !== before[i]);
    }, 'the browser uses other ports');
    await untilTone(CUSTOMER_HZ);
    expect(await nextLevel(customer, AGENT_HZ)).toBeGreaterThan(-30);
    customer.hangup();
    await platform.ended(callId);
  });

  it('lets one supervisor listen in another page, and one whisper by phone', async () => {
    const { customer, callId, control } = await talk();
    const other = await browser.chromium.open(browser.pageUrl);
    await connect('supervise', other);
    const listen = { mode: 'listen', endpoint: { type: 'webrtc' } };
    const { status, body } = await control<{ supervision: { id: string } }>('POST', 'supervise', listen);
    expect(status).toBe(201);
    const { supervision } = body.data;
    await answer(other);
    await platform.until(callId, 'supervision.started');
    await untilTone(CUSTOMER_HZ, other);
    await untilTone(AGENT_HZ, other);
    // The listener's microphone has the same tone, and must stay inaudible to the agent.
    await untilNoTone(AGENT_HZ);

    await platform.phone(WHISPERER, { audio: { kind: 'tone', frequencyHz: WHISPERER_HZ } });
    const whisper = { mode: 'whisper', endpoint: { type: 'phone', number: WHISPERER } };
    expect((await control('POST', 'supervise', whisper)).status).toBe(201);
    await untilTone(WHISPERER_HZ);
    await untilTone(CUSTOMER_HZ);
    expect(await nextLevel(customer, WHISPERER_HZ)).toBeLessThan(-60);
    expect(await nextLevel(customer, AGENT_HZ)).toBeGreaterThan(-30);

    expect((await control('DELETE', `supervise/${supervision.id}`)).status).toBe(200);
    await run("until('ended')", other);
    customer.hangup();
    await platform.ended(callId);
    const { legs } = await platform.call(callId);
    expect(legs).toContainEqual(
      expect.objectContaining({ leg_id: supervision.id, endpoint: { type: 'webrtc', user_id: null } }),
    );
  });
});
