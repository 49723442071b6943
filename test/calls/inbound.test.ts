import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import { verifyCallbackSignature } from '../../actors/callbacks/signature.ts';
import type { PublicSipTrace } from '../../http/schemas/sip-message.ts';
import { eventually } from '../eventually.ts';
import { startBaresip } from '../peers/baresip.ts';
import { peerAvailable } from '../peers/programs.ts';
import { differs } from '../sip/drachtio-endpoint.ts';
import { loudestToneDbov, toneLevelDbov } from '../tone-level.ts';
import { AGENT, AGENT_HZ, CUSTOMER, CUSTOMER_HZ, DID, type Platform, SECRET, startPlatform } from './platform.ts';

/** Whole inbound calls: baresip calls a rented number, and a softphone is the endpoint. */

const RULE = `/dialer/numbers/${encodeURIComponent(DID)}/inbound`;

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

const clean: (() => PromiseLike<unknown>)[] = [];
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
});

async function forward(rule: Record<string, unknown> = {}) {
  const answer = await platform.ask('PUT', RULE, {
    action: 'forward',
    endpoint: { type: 'phone', number: AGENT },
    ...rule,
  });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body.data;
}

const callsOf = async (): Promise<PublicCall[]> => {
  const { body } = await platform.ask<{ calls: PublicCall[] }>('GET', '/dialer/click2call?limit=100');
  return body.data.calls;
};

/** Makes baresip call a number of a platform. */
async function callerOf(called: Platform, number: string, options: Parameters<typeof startBaresip>[0] = {}) {
  const caller = await startBaresip({ user: CUSTOMER, toneFrequencyHz: CUSTOMER_HZ, ...options });
  clean.push(() => caller.stop());
  const { host, port } = called.sipAddress;
  await caller.dial(`sip:${number}@${host}:${port}`);
  return caller;
}

/** Makes baresip call a number; `callId` waits for the call. */
async function call(number = DID, options: Parameters<typeof startBaresip>[0] = {}) {
  const before = (await callsOf()).map(({ call_id }) => call_id);
  const caller = await callerOf(platform, number, options);
  const callId = () =>
    eventually(async () => {
      const found = (await callsOf()).find(({ call_id }) => !before.includes(call_id));
      expect(found).toBeDefined();
      return found!.call_id;
    });
  return { caller, callId };
}

describe.skipIf(!peerAvailable('baresip'))('call to a number with a forward rule', () => {
  it('reaches the endpoint, and gets recorded, charged and logged as a call from the customer', async () => {
    expect(await forward({ record: true })).toMatchObject({
      inbound: { action: 'forward', ring_timeout: 30, record: true, transcribe: false },
    });
    const agent = await platform.phone(AGENT, { audio: { kind: 'tone', frequencyHz: AGENT_HZ } });
    const { caller, callId } = await call();
    const id = await callId();
    const invite = await agent.until('invite');
    expect(invite.from).toBe(DID);
    await platform.until(id, 'recording.started');
    await platform.untilRelayed(id, 100);
    await agent.untilTone(CUSTOMER_HZ, -20);
    agent.hangup();
    const events = (await platform.ended(id)).map(({ event }) => event);
    expect(events).toEqual([
      'call.pending',
      'call.initiated',
      'agent.ringing',
      'agent.answered',
      'customer.dialing',
      'call.bridged',
      'recording.started',
      'call.completed',
    ]);
    const ended = await platform.call(id);
    expect(ended).toMatchObject({
      direction: 'inbound',
      placed_via: 'inbound',
      did: DID,
      agent_number: AGENT,
      customer_number: CUSTOMER,
      state: 'completed',
      leg: 'agent',
      billing_status: 'billed',
    });
    expect(ended.reference_id).toMatch(/^in-/);
    expect(loudestToneDbov(await caller.received(), AGENT_HZ)).toBeGreaterThan(-25);
    const { left, right } = await platform.recordingOf(id);
    const middle = (samples: Int16Array) => samples.subarray(samples.length >> 2, samples.length >> 1);
    expect(toneLevelDbov(middle(left), AGENT_HZ)).toBeGreaterThan(-25);
    expect(toneLevelDbov(middle(right), CUSTOMER_HZ)).toBeGreaterThan(-25);
  });

  it('ends when the caller hangs up, and sends its callback', async () => {
    await forward({ callback_url: platform.receiver.url, callback_secret: SECRET });
    const agent = await platform.phone(AGENT);
    const { caller, callId } = await call();
    const id = await callId();
    await platform.until(id, 'call.bridged');
    await caller.command('hangup');
    await agent.until('bye');
    await platform.ended(id);
    expect(await platform.call(id)).toMatchObject({ state: 'completed', leg: 'customer' });
    const { verified, body } = await platform.receiver.callbackOf(id);
    expect([verified.ok, body.event]).toEqual([true, 'call.completed']);
    await eventually(async () => {
      const { data } = (await platform.ask<PublicSipTrace>('GET', `/dialer/click2call/${id}/sip`)).body;
      const [first] = data.messages.filter(({ leg }) => leg === 'customer');
      expect(first).toMatchObject({ direction: 'in', method: 'INVITE' });
    });
  });

  it('ends when the caller cancels while the endpoint rings', async () => {
    await forward();
    const agent = await platform.phone(AGENT, { answer: 'manual' });
    const { caller, callId } = await call();
    const id = await callId();
    await agent.until('ringing');
    await caller.command('hangup');
    await agent.until('cancelled');
    await platform.ended(id);
    expect(await platform.call(id)).toMatchObject({
      state: 'failed',
      terminal_event: 'call.not_answered',
      hangup_cause: 'ORIGINATOR_CANCEL',
      leg: 'customer',
      cost_usd: null,
    });
  });

  it('answers busy when the endpoint is busy', async () => {
    await forward();
    await platform.phone(AGENT, { answer: { status: 486 } });
    const { caller, callId } = await call();
    await platform.ended(await callId());
    await eventually(() => expect(caller.output()).toContain('486 Busy Here'));
  });

  it('supports hold and transfer like an outbound call', async () => {
    await forward();
    const agent = await platform.phone(AGENT);
    const target = await platform.phone('+919833333333', { audio: { kind: 'tone', frequencyHz: 880 } });
    const { callId } = await call();
    const id = await callId();
    await platform.until(id, 'call.bridged');
    const path = `/dialer/click2call/${id}`;
    expect((await platform.ask('POST', `${path}/hold`, { leg: 'customer' })).status).toBe(200);
    expect((await platform.ask('POST', `${path}/resume`, { leg: 'customer' })).status).toBe(200);
    const endpoint = { type: 'phone', number: '+919833333333' };
    expect((await platform.ask('POST', `${path}/transfer`, { endpoint })).status).toBe(202);
    await platform.until(id, 'transfer.completed');
    await agent.until('bye');
    await target.untilReceived(({ packets }) => packets > 30);
    target.hangup();
    await platform.ended(id);
  });
});

/** The integrator's server, which answers rule requests. */
async function startDecider(answer: (question: Question) => { status?: number; body?: unknown } | null) {
  const questions: (Question & { isSigned: boolean })[] = [];
  const decider = { questions, givenUp: 0 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    response.on('close', () => {
      if (!response.writableFinished) decider.givenUp++;
    });
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const rawBody = Buffer.concat(chunks);
      const header = String(request.headers['x-qcall-signature']);
      const question = JSON.parse(rawBody.toString()) as Question;
      questions.push({ ...question, isSigned: verifyCallbackSignature({ secret: SECRET, rawBody, header }).ok });
      const decided = answer(question);
      if (decided !== null) response.writeHead(decided.status ?? 200).end(JSON.stringify(decided.body));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  clean.push(async () => void server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/inbound`;
  const rule = { action: 'ask', url, secret: SECRET };
  const setRule = (more: object = {}) => platform.ask('PUT', RULE, { ...rule, ...more });
  return Object.assign(decider, { setRule });
}

interface Question {
  event: string;
  data: { from: string; to: string; outbound_trunk_id: string };
}

const FORWARD = { action: 'forward', endpoint: { type: 'phone', number: AGENT } };

describe.skipIf(!peerAvailable('baresip'))('call to a number whose rule asks a URL', () => {
  it('follows the answer of the URL, and sends its callback', async () => {
    const decider = await startDecider(() => ({ body: { ...FORWARD, record: true } }));
    expect((await decider.setRule()).status).toBe(200);
    const agent = await platform.phone(AGENT);
    const { callId } = await call();
    const id = await callId();
    await platform.until(id, 'recording.started');
    agent.hangup();
    const [pending] = await platform.ended(id);
    const data = { from: CUSTOMER, to: DID, outbound_trunk_id: platform.trunkId };
    expect(decider.questions).toMatchObject([{ event: 'call.inbound', isSigned: true, data }]);
    expect(pending).toMatchObject({ event: 'call.pending', data: { decided_by: 'url', fault: null } });
  });

  it('fails as the URL decides', async () => {
    const decider = await startDecider(() => ({ body: { action: 'reject' } }));
    await decider.setRule({ fallback: FORWARD });
    const { caller } = await call();
    await eventually(() => expect(caller.output()).toContain('603 Decline'));
  });

  it.each([
    { fault: 'status_not_2xx', answer: { status: 500, body: FORWARD } },
    { fault: 'invalid_answer', answer: { body: { action: 'dance' } } },
    { fault: 'invalid_answer', answer: { body: { ...FORWARD, endpoint: { type: 'phone', number: '12' } } } },
    { fault: 'timeout', answer: null },
  ])('follows the fallback after $fault', async ({ fault, answer }) => {
    const decider = await startDecider(() => answer);
    await decider.setRule({ fallback: FORWARD });
    const agent = await platform.phone(AGENT);
    const { callId } = await call();
    const id = await callId();
    await platform.until(id, 'call.bridged');
    agent.hangup();
    const [pending] = await platform.ended(id);
    expect(pending?.data).toMatchObject({ decided_by: 'fallback', fault });
  });

  it('creates no call when the caller hangs up before the URL answers', async () => {
    const decider = await startDecider(() => null);
    await decider.setRule({ fallback: FORWARD });
    const { caller } = await call();
    const before = (await callsOf()).length;
    await eventually(() => expect(decider.questions).toHaveLength(1));
    await caller.command('hangup');
    await eventually(() => expect(decider.givenUp).toBe(1));
    expect(await callsOf()).toHaveLength(before);
  });
});

describe.skipIf(!peerAvailable('baresip'))('call without caller number', () => {
  it('connects without a customer number', async () => {
    await forward();
    const agent = await platform.phone(AGENT);
    const { caller, callId } = await call(DID, { user: 'anonymous' });
    const id = await callId();
    await agent.until('invite');
    await platform.until(id, 'call.bridged');
    const bridged = await platform.call(id);
    expect(bridged).toMatchObject({ direction: 'inbound', customer_number: null });
    expect(bridged.legs.find(({ role }) => role === 'customer')?.endpoint).toEqual({ type: 'phone', number: null });
    await caller.command('hangup');
    await platform.ended(id);
    expect((await callsOf()).find(({ call_id }) => call_id === id)).toMatchObject({ customer_number: null });
  });
});

describe.skipIf(!peerAvailable('baresip'))('refused inbound call', () => {
  it('gets 404 for an unrented number, and 603 for a rejecting or missing rule', async () => {
    const stranger = await call('+911140000099');
    await eventually(() => expect(stranger.caller.output()).toContain('404 Not Found'));
    await platform.ask('PUT', RULE, { action: 'reject' });
    const rejected = await call();
    await eventually(() => expect(rejected.caller.output()).toContain('603 Decline'));
  });

  it.skipIf(differs('one'))('gets 404 instead of a forwarding loop', async () => {
    await using other = await startPlatform({ env: { NUMBER_PLAN: 'any' } });
    const rule = { action: 'forward', endpoint: { type: 'phone', number: DID } };
    expect((await other.ask('PUT', RULE, rule)).status).toBe(200);
    const caller = await callerOf(other, DID);
    await eventually(() => expect(caller.output()).toContain('404 Not Found'));
    expect((await other.ask('GET', '/dialer/click2call')).body).toMatchObject({ data: { calls: [] } });
  });

  it.skipIf(differs('one'))('gets 404 from another host than the trunk', async () => {
    await forward();
    await using other = await startPlatform({ trunk: { sip_uri: 'sip:203.0.113.7' } });
    const rule = { action: 'forward', endpoint: { type: 'phone', number: AGENT } };
    expect((await other.ask('PUT', RULE, rule)).status).toBe(200);
    const caller = await callerOf(other, DID);
    await eventually(() => expect(caller.output()).toContain('404 Not Found'));
  });
});

describe.skipIf(!peerAvailable('baresip'))('inbound call from elsewhere, for a trunk with an inbound account', () => {
  const ACCOUNT = { username: 'pbx', password: 'correct-horse-battery' };

  it.skipIf(differs('one'))('requires the password, for every number alike', async () => {
    await using other = await startPlatform({ trunk: { sip_uri: 'sip:203.0.113.7', inbound_auth: ACCOUNT } });
    expect((await other.ask('PUT', RULE, { action: 'reject' })).status).toBe(200);
    const statusOf = async (number: string, account?: typeof ACCOUNT) => {
      const caller = await callerOf(other, number, account && { account });
      return await eventually(() => {
        const status = /session closed: (\d{3})/.exec(caller.output())?.[1];
        expect(status, caller.output()).toBeDefined();
        return status;
      });
    };
    // The number's rule rejects the call.
    expect(await statusOf(DID, ACCOUNT)).toBe('603');
    for (const number of [DID, '+911140000099']) {
      expect([number, await statusOf(number, { ...ACCOUNT, password: 'wrong' })]).toEqual([number, '403']);
      // Baresip answers the challenge with an empty password.
      expect([number, await statusOf(number)]).toEqual([number, '403']);
    }
  });
});
