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

describe('a trunk whose carrier has SRV records', () => {
  it('calls the first server that responds', async () => {
    const second = await startLoopbackCarrier({ recordRoute: true, domain: 'carrier.example' });
    onTestFinished(() => second.stop());
    const [, port] = /:(\d+)$/.exec(second.sipUri)!;
    // Nothing listens at port 9 of the first one.
    const servers = [
      { priority: 10, weight: 1, port: 9, name: 'one.carrier.example' },
      { priority: 20, weight: 1, port: Number(port), name: 'two.carrier.example' },
    ];
    const platform = await startPlatform({
      dns: {
        resolve: async () => ['127.0.0.1'],
        services: { naptr: async () => [], srv: async (name) => (name === '_sip._tcp.carrier.example' ? servers : []) },
      },
    });
    onTestFinished(() => platform[Symbol.asyncDispose]());
    const trunk = { sip_uri: 'sip:carrier.example', transport: 'auto' };
    await platform.ask('PATCH', `/dialer/trunks/${platform.trunkId}`, trunk);
    for (const number of [AGENT, CUSTOMER]) second.routes.set(number, (await platform.phone(number)).address);
    await talk({ platform, second });
    expect([...second.inviteCounts.values()]).toEqual([1, 1]);
  });
});
