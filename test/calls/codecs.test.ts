import { afterEach, describe, expect, it } from 'vitest';
import { startBaresip } from '../peers/baresip.ts';
import { peerAvailable } from '../peers/programs.ts';
import type { Softphone } from '../softphone/softphone.ts';
import { loudestToneDbov, toneLevelDbov, withoutEndSilence } from '../tone-level.ts';
import { AGENT_HZ, CUSTOMER, CUSTOMER_HZ, type Platform, startPlatform } from './platform.ts';

/** Whole calls over a trunk that offers G.722. */

/** Above the range of 8 kHz audio. */
const WIDEBAND_HZ = 5500;

const clean: (() => PromiseLike<unknown>)[] = [];

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
});

async function platformWith(codecs: readonly string[]): Promise<Platform> {
  const platform = await startPlatform({ trunk: { codecs } });
  clean.push(() => platform[Symbol.asyncDispose]());
  return platform;
}

async function untilBothReceived({ agent, customer }: Record<'agent' | 'customer', Softphone>): Promise<void> {
  await agent.untilReceived((received) => received.packets > 100);
  await customer.untilReceived((received) => received.packets > 60);
  // A change of the playout delay shifts the phase of the tone and cancels a part of it.
  await agent.untilTone(CUSTOMER_HZ, -24);
  await customer.untilTone(AGENT_HZ, -24);
}

async function hangUp(platform: Platform, callId: string) {
  await platform.ask('POST', `/dialer/click2call/${callId}/hangup`);
  await platform.ended(callId);
  return await platform.call(callId);
}

describe('call over a trunk that prefers G.722', () => {
  it('connects a G.722 agent with a G.711 customer, and records both at 16 kHz', async () => {
    const platform = await platformWith(['G722', 'PCMU', 'PCMA']);
    const parties = await platform.parties({ agent: { codecs: ['G722'] }, customer: { codecs: ['PCMA'] } });
    const placed = await platform.place({ record: true });
    await platform.until(placed.call_id, 'call.bridged');
    await untilBothReceived(parties);
    parties.agent.sendDtmf('7');
    await parties.customer.untilReceived(({ digits }) => digits === '7');
    const { quality } = await hangUp(platform, placed.call_id);
    expect(quality).toMatchObject({
      agent: { codec: 'G722', packets_lost: 0 },
      customer: { codec: 'PCMA', packets_lost: 0 },
    });
    expect(parties.agent.received().continuity).toMatchObject({ foreign: 0, lost: 0, payloadTypes: [9] });
    expect(parties.customer.received().continuity).toMatchObject({ foreign: 0, lost: 0 });
    const { left, right, sampleRateHz } = await platform.recordingOf(placed.call_id);
    expect(sampleRateHz).toBe(16_000);
    expect(toneLevelDbov(withoutEndSilence(left).subarray(-8000, -3200), AGENT_HZ, 16_000)).toBeGreaterThan(-20);
    expect(toneLevelDbov(withoutEndSilence(right).subarray(-8000, -1600), CUSTOMER_HZ, 16_000)).toBeGreaterThan(-20);
  });

  it('uses G.722 on both legs where possible, and records frequencies above 4 kHz', async () => {
    const platform = await platformWith(['G722', 'PCMU']);
    const codecs = ['PCMU', 'G722'] as const;
    const parties = await platform.parties({
      agent: { codecs: [...codecs].reverse() },
      customer: { codecs: ['G722'], audio: { kind: 'tone', frequencyHz: WIDEBAND_HZ } },
    });
    const placed = await platform.place({ record: true });
    await platform.until(placed.call_id, 'call.bridged');
    await parties.customer.untilReceived((received) => received.packets > 60);
    await parties.customer.untilTone(AGENT_HZ);
    expect((await hangUp(platform, placed.call_id)).quality).toMatchObject({
      agent: { codec: 'G722' },
      customer: { codec: 'G722' },
    });
    const { right, sampleRateHz } = await platform.recordingOf(placed.call_id);
    expect(sampleRateHz).toBe(16_000);
    expect(toneLevelDbov(withoutEndSilence(right).subarray(-8000, -1600), WIDEBAND_HZ, 16_000)).toBeGreaterThan(-20);
  });
});

describe('call over a trunk that prefers Opus', () => {
  it('connects an Opus agent with a G.711 customer, and records frequencies above 4 kHz', async () => {
    const platform = await platformWith(['OPUS', 'PCMU']);
    const { agent, customer } = await platform.parties({
      agent: { codecs: ['OPUS'], audio: { kind: 'tone', frequencyHz: WIDEBAND_HZ } },
      customer: { codecs: ['PCMU'] },
    });
    const placed = await platform.place({ record: true });
    await platform.until(placed.call_id, 'call.bridged');
    await agent.untilReceived((received) => received.packets > 100);
    await customer.untilReceived((received) => received.packets > 60);
    await agent.untilTone(CUSTOMER_HZ, -24);
    agent.sendDtmf('7');
    await customer.untilReceived(({ digits }) => digits === '7');
    const { quality } = await hangUp(platform, placed.call_id);
    expect(quality).toMatchObject({ agent: { codec: 'OPUS', packets_lost: 0 }, customer: { codec: 'PCMU' } });
    expect(agent.received().continuity).toMatchObject({ foreign: 0, lost: 0, payloadTypes: [111] });
    const { left, right, sampleRateHz } = await platform.recordingOf(placed.call_id);
    expect(sampleRateHz).toBe(16_000);
    expect(toneLevelDbov(withoutEndSilence(left).subarray(-12_000, -6400), WIDEBAND_HZ, 16_000)).toBeGreaterThan(-20);
    expect(toneLevelDbov(withoutEndSilence(right).subarray(-8000, -1600), CUSTOMER_HZ, 16_000)).toBeGreaterThan(-20);
  });
});

describe.skipIf(!peerAvailable('baresip'))('baresip', () => {
  for (const [codec, sampleRateHz] of [
    ['G722', 16_000],
    ['OPUS', 48_000],
  ] as const) {
    it(`exchanges audio in ${codec} with a G.711 agent`, async () => {
      const platform = await platformWith(['PCMU', codec]);
      const { agent } = await platform.parties({ agent: { codecs: ['PCMU'] } });
      const peer = await startBaresip({ user: CUSTOMER, toneFrequencyHz: CUSTOMER_HZ, codecs: [codec] });
      clean.push(() => peer.stop());
      platform.carrier.routes.set(CUSTOMER, peer.address);
      const placed = await platform.place();
      await platform.until(placed.call_id, 'call.bridged');
      await platform.untilRelayed(placed.call_id, 100);
      await agent.untilTone(CUSTOMER_HZ);
      expect((await hangUp(platform, placed.call_id)).quality).toMatchObject({
        agent: { codec: 'PCMU' },
        customer: { codec, packets_lost: 0 },
      });
      expect(loudestToneDbov(await peer.received(), AGENT_HZ, sampleRateHz)).toBeGreaterThan(-25);
    });
  }
});
