import { afterEach, describe, expect, it } from 'vitest';
import { toneLevelDbov } from '../../media/dsp/goertzel.ts';
import { type BaresipOptions, startBaresip } from '../peers/baresip.ts';
import { peerAvailable } from '../peers/programs.ts';
import { startSipp } from '../peers/sipp.ts';
import { AGENT, CUSTOMER, type Platform, startPlatform } from './platform.ts';

/** Whole calls between programs that share no code with us. What each heard is read off its own tone. */

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

/** A recorded call that is hung up through the API after enough of it was heard on both sides. */
async function talk(platform: Platform, request: Record<string, unknown> = {}) {
  const placed = await platform.place({ record: true, ...request });
  await platform.until(placed.call_id, 'recording.started');
  await platform.untilRelayed(placed.call_id, 100);
  await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
  return { call: await platform.call(placed.call_id), recording: await platform.recordingOf(placed.call_id) };
}

function expectTone(samples: Int16Array, { heard, notHeard }: { heard: number; notHeard: number }) {
  const middle = samples.subarray(samples.length >> 2, (samples.length * 3) >> 2);
  expect(toneLevelDbov(middle, heard)).toBeGreaterThan(-25);
  expect(toneLevelDbov(middle, notHeard)).toBeLessThan(-50);
}

describe.skipIf(!peerAvailable('baresip') || !peerAvailable('sipp'))('baresip and sipp', () => {
  it('talk with each other, baresip as the agent: it hears sipp, and each is on its channel', async () => {
    const platform = await platformWith();
    const agent = await baresip(platform, AGENT);
    const customer = await sipp(platform, CUSTOMER);
    const { call, recording } = await talk(platform);
    expect(call).toMatchObject({ state: 'completed', hangup_cause: 'NORMAL_CLEARING', billing_status: 'billed' });
    await customer.succeeded();
    expectTone(await agent.heard(), { heard: SIPP_HZ, notHeard: BARESIP_HZ });
    expectTone(recording.left, { heard: BARESIP_HZ, notHeard: SIPP_HZ });
    expectTone(recording.right, { heard: SIPP_HZ, notHeard: BARESIP_HZ });
  });

  it('talk with each other, sipp as the agent, over a TCP trunk', async () => {
    const platform = await platformWith({ trunk: { transport: 'tcp' } });
    const agent = await sipp(platform, AGENT, 'tcp');
    const customer = await baresip(platform, CUSTOMER, { transport: 'tcp' });
    const { call, recording } = await talk(platform);
    expect(call).toMatchObject({ state: 'completed' });
    await agent.succeeded();
    expectTone(await customer.heard(), { heard: SIPP_HZ, notHeard: BARESIP_HZ });
    expectTone(recording.left, { heard: SIPP_HZ, notHeard: BARESIP_HZ });
    expectTone(recording.right, { heard: BARESIP_HZ, notHeard: SIPP_HZ });
  });
});

describe.skipIf(!peerAvailable('baresip'))('two baresips', () => {
  it('hear each other although one speaks PCMA and the other PCMU, through a carrier that asks for a password', async () => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 407 } as const;
    const platform = await platformWith({
      carrier: { auth, recordRoute: true },
      trunk: { username: 'tandem', password: 's3cret' },
    });
    const agent = await baresip(platform, AGENT, { codecs: ['PCMA'] });
    const customer = await baresip(platform, CUSTOMER, { codecs: ['PCMU'], toneFrequencyHz: SIPP_HZ });
    const { call } = await talk(platform);
    expect(call.quality).toMatchObject({ agent: { codec: 'PCMA' }, customer: { codec: 'PCMU' } });
    expectTone(await agent.heard(), { heard: SIPP_HZ, notHeard: BARESIP_HZ });
    expectTone(await customer.heard(), { heard: BARESIP_HZ, notHeard: SIPP_HZ });
  });
});

describe.skipIf(!peerAvailable('sipp'))('sipp', () => {
  for (const [scenario, leg, cause] of [
    ['busy', 'customer', 'USER_BUSY'],
    ['declines', 'agent', 'CALL_REJECTED'],
  ] as const) {
    it(`as the ${leg} that ${scenario} ends the call as not answered`, async () => {
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

  it('that never answers is cancelled when the caller hangs up', async () => {
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
