import { afterEach, describe, expect, it } from 'vitest';
import type { PublicSipTrace } from '../../http/schemas/sip-message.ts';
import { eventually } from '../eventually.ts';
import { type BaresipOptions, startBaresip } from '../peers/baresip.ts';
import { startLinphone } from '../peers/linphone.ts';
import { peerAvailable } from '../peers/programs.ts';
import { startSipp } from '../peers/sipp.ts';
import { differs } from '../sip/drachtio-endpoint.ts';
import { loudestToneDbov, toneLevelDbov } from '../tone-level.ts';
import { AGENT, CUSTOMER, DID, type Platform, startPlatform } from './platform.ts';

/** Calls between third-party programs. Each has a tone, which shows who hears it. */

const BARESIP_HZ = 500;
const SIPP_HZ = 800;

const clean: (() => PromiseLike<unknown>)[] = [];

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
});

async function platformWith(...[options]: Parameters<typeof startPlatform>): Promise<Platform> {
  const platform = await startPlatform(options);
  clean.push(() => platform[Symbol.asyncDispose]());
  return platform;
}

async function baresip(platform: Platform, number: string, options: BaresipOptions = {}) {
  const peer = await startBaresip({ user: number, toneFrequencyHz: BARESIP_HZ, ...options });
  clean.push(() => peer.stop());
  platform.carrier.routes.set(number, peer.address);
  return peer;
}

async function sipp(platform: Platform, number: string, transport: 'udp' | 'tcp' = 'udp') {
  const peer = await startSipp({ scenario: 'answers-and-plays-tone', toneFrequencyHz: SIPP_HZ, transport });
  clean.push(() => peer.stop());
  platform.carrier.routes.set(number, peer.address);
  return peer;
}

/** A recorded call, hung up through the API after enough audio in both directions. */
async function talk(platform: Platform, request: Record<string, unknown> = {}) {
  const placed = await platform.place({ record: true, ...request });
  await platform.until(placed.call_id, 'recording.started');
  await platform.untilRelayed(placed.call_id, 100);
  await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
  return { call: await platform.call(placed.call_id), recording: await platform.recordingOf(placed.call_id) };
}

function expectTone(samples: Int16Array, { audible, inaudible }: { audible: number; inaudible: number }) {
  const middle = samples.subarray(samples.length >> 2, (samples.length * 3) >> 2);
  expect(toneLevelDbov(middle, audible)).toBeGreaterThan(-25);
  expect(toneLevelDbov(middle, inaudible)).toBeLessThan(-50);
}

describe.skipIf(!peerAvailable('baresip') || !peerAvailable('sipp'))('baresip and sipp', () => {
  it('exchange audio with baresip as the agent, and record each on its channel', async () => {
    const platform = await platformWith();
    const agent = await baresip(platform, AGENT);
    const customer = await sipp(platform, CUSTOMER);
    const { call, recording } = await talk(platform);
    expect(call).toMatchObject({ state: 'completed', hangup_cause: 'NORMAL_CLEARING', billing_status: 'billed' });
    await customer.succeeded();
    expectTone(await agent.received(), { audible: SIPP_HZ, inaudible: BARESIP_HZ });
    expectTone(recording.left, { audible: BARESIP_HZ, inaudible: SIPP_HZ });
    expectTone(recording.right, { audible: SIPP_HZ, inaudible: BARESIP_HZ });
  });

  it('exchange audio with sipp as the agent, over a TCP trunk', async () => {
    const platform = await platformWith({ trunk: { transport: 'tcp' } });
    const agent = await sipp(platform, AGENT, 'tcp');
    const customer = await baresip(platform, CUSTOMER, { transport: 'tcp' });
    const { call, recording } = await talk(platform);
    expect(call).toMatchObject({ state: 'completed' });
    await agent.succeeded();
    expectTone(await customer.received(), { audible: SIPP_HZ, inaudible: BARESIP_HZ });
    expectTone(recording.left, { audible: SIPP_HZ, inaudible: BARESIP_HZ });
    expectTone(recording.right, { audible: BARESIP_HZ, inaudible: SIPP_HZ });
  });
});

describe.skipIf(!peerAvailable('baresip'))('two baresips', () => {
  it('exchange audio with different codecs, through a carrier with digest authentication', async () => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 407 } as const;
    const platform = await platformWith({
      carrier: { auth, recordRoute: true },
      trunk: { username: 'tandem', password: 's3cret' },
    });
    const agent = await baresip(platform, AGENT, { codecs: ['PCMA'] });
    const customer = await baresip(platform, CUSTOMER, { codecs: ['PCMU'], toneFrequencyHz: SIPP_HZ });
    const { call } = await talk(platform);
    expect(call.quality).toMatchObject({ agent: { codec: 'PCMA' }, customer: { codec: 'PCMU' } });
    expectTone(await agent.received(), { audible: SIPP_HZ, inaudible: BARESIP_HZ });
    expectTone(await customer.received(), { audible: BARESIP_HZ, inaudible: SIPP_HZ });
  });
});

describe.skipIf(!peerAvailable('sipp'))('sipp', () => {
  for (const [scenario, leg, cause] of [
    ['busy', 'customer', 'USER_BUSY'],
    ['declines', 'agent', 'CALL_REJECTED'],
  ] as const) {
    it(`ends the call as not answered (${leg}: ${scenario})`, async () => {
      const platform = await platformWith();
      await platform.parties();
      const peer = await startSipp({ scenario });
      clean.push(() => peer.stop());
      platform.carrier.routes.set(leg === 'agent' ? AGENT : CUSTOMER, peer.address);
      const placed = await platform.place();
      await platform.ended(placed.call_id);
      expect(await platform.call(placed.call_id)).toMatchObject({ hangup_cause: cause, leg, state: 'failed' });
      await peer.succeeded();
    });
  }

  it('gets a CANCEL when the caller hangs up before the answer', async () => {
    const platform = await platformWith();
    await platform.parties();
    const peer = await startSipp({ scenario: 'never-answers' });
    clean.push(() => peer.stop());
    platform.carrier.routes.set(CUSTOMER, peer.address);
    const placed = await platform.place();
    await platform.until(placed.call_id, 'customer.ringing');
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
    await peer.succeeded();
    expect(await platform.call(placed.call_id)).toMatchObject({ hangup_cause: 'ORIGINATOR_CANCEL' });
  });
});

describe.skipIf(!peerAvailable('baresip') || differs('certificates'))('baresip over TLS with SRTP', () => {
  it('can be agent and customer of an encrypted call', async () => {
    const peer = await startBaresip({
      ...{ user: AGENT, alsoUsers: [CUSTOMER], transport: 'tls', mediaEncryption: 'srtp-mand' },
      toneFrequencyHz: BARESIP_HZ,
    });
    clean.push(() => peer.stop());
    const platform = await platformWith({
      env: { SIP_TLS_CA: peer.caFile },
      trunk: { sip_uri: peer.sipUri, transport: 'tls', media_encryption: 'required' },
    });
    const { call, recording } = await talk(platform);
    expect(call).toMatchObject({ state: 'completed', hangup_cause: 'NORMAL_CLEARING' });
    expect(call.legs.map(({ quality }) => quality?.encryption)).toEqual([
      expect.stringContaining('AES'),
      expect.stringContaining('AES'),
    ]);
    for (const samples of [recording.left, recording.right]) {
      expectTone(samples, { audible: BARESIP_HZ, inaudible: SIPP_HZ });
    }
    const { data } = (await platform.ask<PublicSipTrace>('GET', `/dialer/click2call/${call.call_id}/sip`)).body;
    expect(new Set(data.messages.map(({ transport }) => transport))).toEqual(new Set(['tls']));
  });
});

describe.skipIf(!peerAvailable('linphonec'))('linphone', () => {
  const LINPHONE_HZ = 350;

  async function linphone(platform: Platform, number: string) {
    const peer = await startLinphone({ toneFrequencyHz: LINPHONE_HZ });
    clean.push(() => peer.stop());
    platform.carrier.routes.set(number, peer.address);
    return peer;
  }

  it('exchanges audio as the agent, and can be held', async () => {
    const platform = await platformWith();
    const agent = await linphone(platform, AGENT);
    const customer = await platform.phone(CUSTOMER, { audio: { kind: 'tone', frequencyHz: SIPP_HZ } });
    const { call_id: callId } = await platform.place({ record: true });
    await platform.untilRelayed(callId, 100);
    const hold = (path: string) => platform.ask('POST', `/dialer/click2call/${callId}/${path}`, { leg: 'agent' });
    expect((await hold('hold')).status).toBe(200);
    expect((await hold('resume')).status).toBe(200);
    customer.hangup();
    await platform.ended(callId);
    await customer.untilTone(LINPHONE_HZ, -25);
    expect(toneLevelDbov((await agent.received()).subarray(4000, 12_000), SIPP_HZ)).toBeGreaterThan(-25);
  });

  it('transfers its call with REFER, and receives the outcome', async () => {
    const platform = await platformWith({ trunk: { refer: 'agent' } });
    const agent = await linphone(platform, AGENT);
    const customer = await platform.phone(CUSTOMER);
    const target = '+919833333333';
    const third = await platform.phone(target, { audio: { kind: 'tone', frequencyHz: SIPP_HZ } });
    const { call_id: callId } = await platform.place();
    await platform.until(callId, 'call.bridged');
    agent.type(`transfer sip:${target}@127.0.0.1:${platform.sipAddress.port}`);
    const completed = await platform.until(callId, 'transfer.completed');
    expect(completed).toMatchObject({ data: { replaces: 'agent', requested_by: 'refer' } });
    await customer.untilTone(SIPP_HZ, -25);
    third.hangup();
    await platform.ended(callId);
  });

  it('calls a rented number, and exchanges audio with the endpoint of its rule', async () => {
    const platform = await platformWith();
    const rule = { action: 'forward', endpoint: { type: 'phone', number: AGENT } };
    expect((await platform.ask('PUT', `/dialer/numbers/${encodeURIComponent(DID)}/inbound`, rule)).status).toBe(200);
    const agent = await platform.phone(AGENT, { audio: { kind: 'tone', frequencyHz: SIPP_HZ } });
    const caller = await linphone(platform, CUSTOMER);
    const { host, port } = platform.sipAddress;
    caller.type(`call sip:${DID}@${host}:${port}`);
    await agent.until('invite');
    await eventually(() => expect(agent.received().packets, caller.output()).toBeGreaterThan(60));
    await agent.untilTone(LINPHONE_HZ, -25);
    caller.type('terminate');
    await agent.until('bye');
    expect(loudestToneDbov(await caller.received(), SIPP_HZ)).toBeGreaterThan(-25);
  });
});
