import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../logging.ts';
import { cryptoValuesOf, readCrypto } from '../../sip/sdes.ts';
import { startBaresip } from '../peers/baresip.ts';
import { peerAvailable } from '../peers/programs.ts';
import type { Softphone } from '../softphone/softphone.ts';
import { loudestToneDbov, toneLevelDbov, withoutEndSilence } from '../tone-level.ts';
import { AGENT, AGENT_HZ, CUSTOMER, CUSTOMER_HZ, type Platform, startPlatform } from './platform.ts';

/** Whole calls over trunks with media encryption. */

const SUITE = 'AES_CM_128_HMAC_SHA1_80';
const clean: (() => PromiseLike<unknown>)[] = [];
const platforms = new Map<string, Promise<Platform>>();

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
});

afterAll(async () => {
  for (const platform of platforms.values()) await (await platform)[Symbol.asyncDispose]();
});

/** Shared by all tests of one encryption mode. */
function platformWith(mediaEncryption: string): Promise<Platform> {
  let platform = platforms.get(mediaEncryption);
  platform ??= startPlatform({ trunk: { media_encryption: mediaEncryption } });
  platforms.set(mediaEncryption, platform);
  return platform;
}

async function hangUp(platform: Platform, callId: string) {
  await platform.ask('POST', `/dialer/click2call/${callId}/hangup`);
  await platform.ended(callId);
  return await platform.call(callId);
}

async function untilBothReceived({ agent, customer }: Record<'agent' | 'customer', Softphone>, packets = 60) {
  await agent.untilReceived((received) => received.packets > packets);
  await customer.untilReceived((received) => received.packets > packets);
  await agent.untilTone(CUSTOMER_HZ);
  await customer.untilTone(AGENT_HZ);
}

function keysOffered(phone: Softphone): string[] {
  const invite = phone.log.all.find((event) => event.type === 'invite')!;
  const values = cryptoValuesOf((invite as { message: { body: Buffer } }).message.body.toString())[0]!;
  return readCrypto(values).map(({ masterKey }) => masterKey.toString('base64'));
}

describe('call over a trunk that requires encryption', () => {
  it('keeps its keys over a hold with encrypted music, and resumes audio in both directions', async () => {
    const platform = await platformWith('required');
    const parties = await platform.parties({
      agent: { encryption: 'required' },
      customer: { encryption: 'required' },
    });
    const { call_id: callId } = await platform.place();
    await platform.until(callId, 'call.bridged');
    await untilBothReceived(parties);
    for (const path of ['hold', 'resume']) {
      const { status } = await platform.ask('POST', `/dialer/click2call/${callId}/${path}`, { leg: 'customer' });
      expect(status).toBe(200);
      await parties.customer.until(
        'reinvite',
        ({ media }) => media.direction === (path === 'hold' ? 'sendonly' : 'sendrecv'),
      );
    }
    const { packets } = parties.customer.received();
    await untilBothReceived(parties, packets + 60);
    expect(parties.customer.received().continuity).toMatchObject({ foreign: 0, lost: 0 });
    await hangUp(platform, callId);
  });

  it('encrypts both legs, records in the clear, and leaves no key in log, events or database', async () => {
    const lines: string[] = [];
    const logger = createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } });
    await using platform = await startPlatform({ logger, trunk: { media_encryption: 'required' } });
    const parties = await platform.parties({
      agent: { encryption: 'required' },
      customer: { encryption: 'required' },
    });
    const placed = await platform.place({ record: true });
    await platform.until(placed.call_id, 'call.bridged');
    await untilBothReceived(parties, 120);
    parties.customer.sendDtmf('7');
    await parties.agent.untilReceived(({ digits }) => digits === '7');
    const dtmf = { leg: 'customer', digits: '5' };
    expect((await platform.ask('POST', `/dialer/click2call/${placed.call_id}/dtmf`, dtmf)).status).toBe(200);
    await parties.customer.untilReceived(({ digits }) => digits === '5');
    const call = await hangUp(platform, placed.call_id);
    expect(call).toMatchObject({
      state: 'completed',
      quality: { agent: { encryption: SUITE }, customer: { encryption: SUITE } },
    });
    const { left, right } = await platform.recordingOf(placed.call_id);
    expect(toneLevelDbov(withoutEndSilence(left).subarray(-4000, -800), AGENT_HZ)).toBeGreaterThan(-20);
    expect(toneLevelDbov(withoutEndSilence(right).subarray(-4000, -800), CUSTOMER_HZ)).toBeGreaterThan(-20);

    const keys = [...keysOffered(parties.agent), ...keysOffered(parties.customer)];
    expect(new Set(keys).size).toBe(8);
    const { body } = await platform.ask('GET', `/dialer/click2call/${placed.call_id}/events`);
    const rows = await platform.sql`select to_jsonb(c) as row from calls c
      union all select to_jsonb(e) from call_events e union all select to_jsonb(d) from deliveries d`;
    expect(lines.join('')).toContain('actor transition');
    for (const written of [lines.join(''), JSON.stringify(body), JSON.stringify(rows), JSON.stringify(call)]) {
      for (const key of keys) expect(written).not.toContain(key.slice(0, 12));
      expect(written).not.toContain('inline:');
    }
  });

  it('fails with a specific error when the customer answers without encryption', async () => {
    const platform = await platformWith('required');
    const strip = (sdp: string) => sdp.replace(/a=crypto:.*\r\n/g, '');
    const { customer } = await platform.parties({
      agent: { encryption: 'required' },
      customer: { encryption: 'required', alterSdp: strip },
    });
    const placed = await platform.place();
    await platform.ended(placed.call_id);
    expect(await platform.call(placed.call_id)).toMatchObject({
      state: 'failed',
      terminal_event: 'call.failed',
      hangup_cause: 'INCOMPATIBLE_DESTINATION',
      leg: 'customer',
      error: 'customer_not_encrypted',
      error_detail: 'the answer has no media encryption, which the trunk requires',
    });
    expect(customer.received().packets).toBe(0);
  });

  it('fails when the agent does not support SRTP', async () => {
    const platform = await platformWith('required');
    await platform.parties();
    const placed = await platform.place();
    await platform.ended(placed.call_id);
    expect(await platform.call(placed.call_id)).toMatchObject({
      hangup_cause: 'INCOMPATIBLE_DESTINATION',
      leg: 'agent',
      error: 'agent_refused',
    });
  });

  it('drops packets with a wrong key', async () => {
    const platform = await platformWith('required');
    const otherKey = (sdp: string) => sdp.replace(/inline:.{8}/, 'inline:AAAAAAAA');
    const { agent, customer } = await platform.parties({
      agent: { encryption: 'required' },
      customer: { encryption: 'required', alterSdp: otherKey },
    });
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    await customer.untilReceived(({ packets }) => packets > 60);
    const { packets } = agent.received();
    const { quality } = await hangUp(platform, placed.call_id);
    expect(quality).toMatchObject({ customer: { packets_received: 0, encryption: SUITE } });
    expect(agent.received().packets).toBe(packets);
    // The ringback tone before the answer contains a little of that frequency.
    expect(agent.received().toneLevels([CUSTOMER_HZ])[0]).toBeLessThan(-40);
  });

  it('continues when a party re-keys, holds and resumes', async () => {
    const platform = await platformWith('required');
    const parties = await platform.parties({
      agent: { encryption: 'required' },
      customer: { encryption: 'required' },
    });
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    await parties.customer.until('confirmed');
    await untilBothReceived(parties);
    expect(await parties.customer.call.offerAgain('sendrecv', { newKeys: true })).toBe(200);
    await untilBothReceived(parties, parties.agent.received().packets + 60);
    expect(await parties.agent.hold()).toBe(200);
    expect(await parties.agent.unhold()).toBe(200);
    await untilBothReceived(parties, parties.agent.received().packets + 60);
    expect(parties.agent.call.voice.droppedPackets + parties.customer.call.voice.droppedPackets).toBe(0);
    expect((await hangUp(platform, placed.call_id)).quality).toMatchObject({
      agent: { packets_lost: 0 },
      customer: { packets_lost: 0 },
    });
  });
});

describe('call over a trunk with optional encryption', () => {
  it('connects an encrypted agent with a plain customer, with early media', async () => {
    const platform = await platformWith('optional');
    const parties = await platform.parties({
      agent: { encryption: 'required' },
      customer: { earlyMedia: true, ringForMs: 200, codecs: ['PCMA'] },
    });
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    await untilBothReceived(parties);
    expect((await hangUp(platform, placed.call_id)).quality).toMatchObject({
      agent: { encryption: SUITE },
      customer: { encryption: null },
    });
  });
});

describe.skipIf(!peerAvailable('baresip'))('baresip with SRTP', () => {
  for (const [suite, skip] of [
    ['AES_CM_128_HMAC_SHA1_80', []],
    ['AEAD_AES_256_GCM', ['AES_CM_128_HMAC_SHA1_80']],
    ['AEAD_AES_128_GCM', ['AES_CM_128_HMAC_SHA1_80', 'AEAD_AES_256_GCM']],
    ['AES_CM_128_HMAC_SHA1_32', ['AES_CM_128_HMAC_SHA1_80', 'AEAD_AES_256_GCM', 'AEAD_AES_128_GCM']],
  ] as const) {
    it(`exchanges audio with ${suite} on both legs`, async () => {
      const lines = new RegExp(`a=crypto:\\d (${skip.join('|')}) .*\\r\\n`, 'g');
      const alterOffer = (sdp: string) => (skip.length === 0 ? sdp : sdp.replace(lines, ''));
      await using platform = await startPlatform({ trunk: { media_encryption: 'required' }, carrier: { alterOffer } });
      const peers = { agent: AGENT_HZ, customer: CUSTOMER_HZ };
      const [agent, customer] = await Promise.all(
        Object.entries(peers).map(async ([leg, toneFrequencyHz]) => {
          const user = leg === 'agent' ? AGENT : CUSTOMER;
          const peer = await startBaresip({ user, toneFrequencyHz, mediaEncryption: 'srtp-mand' });
          clean.push(() => peer.stop());
          platform.carrier.routes.set(user, peer.address);
          return peer;
        }),
      );
      const placed = await platform.place();
      await platform.until(placed.call_id, 'call.bridged');
      await platform.untilRelayed(placed.call_id, 100);
      const { quality } = await hangUp(platform, placed.call_id);
      expect(quality).toMatchObject({ agent: { encryption: suite }, customer: { encryption: suite } });
      expect(loudestToneDbov(await agent!.received(), CUSTOMER_HZ)).toBeGreaterThan(-25);
      expect(loudestToneDbov(await customer!.received(), AGENT_HZ)).toBeGreaterThan(-25);
    });
  }

  it('exchanges audio again after it held and resumed the call', async () => {
    const platform = await platformWith('required');
    const { agent } = await platform.parties({ agent: { encryption: 'required' } });
    const peer = await startBaresip({ user: CUSTOMER, toneFrequencyHz: CUSTOMER_HZ, mediaEncryption: 'srtp-mand' });
    clean.push(() => peer.stop());
    platform.carrier.routes.set(CUSTOMER, peer.address);
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    await platform.untilRelayed(placed.call_id, 50);
    const acknowledged = () => platform.carrier.log.ofType('request').filter(({ method }) => method === 'ACK').length;
    for (const command of ['hold', 'resume']) {
      const before = acknowledged();
      await peer.command(command);
      await platform.carrier.log.until('request', () => acknowledged() > before);
    }
    const { packets } = agent.received();
    await agent.untilReceived((received) => received.packets > packets + 60);
    await agent.untilTone(CUSTOMER_HZ);
    expect(agent.call.voice.droppedPackets).toBe(0);
    await hangUp(platform, placed.call_id);
    expect(loudestToneDbov(await peer.received(), AGENT_HZ)).toBeGreaterThan(-25);
  });

  it('uses optional encryption where possible, and plain audio otherwise', async () => {
    const platform = await platformWith('optional');
    for (const [user, mediaEncryption] of [
      [AGENT, 'srtp'],
      [CUSTOMER, undefined],
    ] as const) {
      const peer = await startBaresip({ user, ...(mediaEncryption && { mediaEncryption }) });
      clean.push(() => peer.stop());
      platform.carrier.routes.set(user, peer.address);
    }
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    await platform.untilRelayed(placed.call_id, 100);
    expect((await hangUp(platform, placed.call_id)).quality).toMatchObject({
      agent: { encryption: SUITE },
      customer: { encryption: null },
    });
  });
});
