import { describe, expect, it, onTestFinished } from 'vitest';
import { type LoopbackCarrier, startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { AGENT, CUSTOMER, type Platform, startPlatform } from './platform.ts';

interface Gateways {
  platform: Platform;
  second: LoopbackCarrier;
}

/** A trunk over two carriers; the phones are at both. */
async function startGateways(): Promise<Gateways> {
  const second = await startLoopbackCarrier({ recordRoute: true });
  onTestFinished(() => second.stop());
  const platform = await startPlatform();
  onTestFinished(() => platform[Symbol.asyncDispose]());
  const gateways = [
    { sip_uri: platform.carrier.sipUri, priority: 0 },
    { sip_uri: second.sipUri, priority: 1 },
  ];
  await platform.ask('PATCH', `/dialer/trunks/${platform.trunkId}`, { gateways });
  for (const number of [AGENT, CUSTOMER]) {
    const phone = await platform.phone(number);
    second.routes.set(number, phone.address);
  }
  return { platform, second };
}

async function talk({ platform }: Gateways) {
  const { call_id } = await platform.place();
  await platform.until(call_id, 'call.bridged');
  await platform.ask('POST', `/dialer/click2call/${call_id}/hangup`);
}

describe('a trunk with two gateways', () => {
  it('places its calls over the first', async () => {
    const gateways = await startGateways();
    await talk(gateways);
    expect(gateways.platform.carrier.inviteCounts.get(AGENT)).toBe(1);
    expect(gateways.second.inviteCounts.size).toBe(0);
  });

  it('fails over to the second on 503, and spares the first until its Retry-After has passed', async () => {
    const gateways = await startGateways();
    const { carrier } = gateways.platform;
    for (const number of [AGENT, CUSTOMER]) carrier.failures.set(number, 503);
    carrier.retryAfterS = 60;
    await talk(gateways);
    expect([carrier.inviteCounts.get(AGENT), carrier.inviteCounts.get(CUSTOMER)]).toEqual([1, undefined]);
    expect([...gateways.second.inviteCounts.values()]).toEqual([1, 1]);
  });

  it('fails over to the second when the first has fallen silent', async () => {
    const gateways = await startGateways();
    await gateways.platform.tandem.probeTrunks();
    gateways.platform.carrier.isSilent = true;
    await talk(gateways);
    expect([...gateways.second.inviteCounts.values()]).toEqual([1, 1]);
  });

  it('fails over to the second when nothing listens at the first', async () => {
    const gateways = await startGateways();
    await gateways.platform.carrier.stop();
    await talk(gateways);
    expect([...gateways.second.inviteCounts.values()]).toEqual([1, 1]);
  });
});
