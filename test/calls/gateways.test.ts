import { describe, expect, it, onTestFinished } from 'vitest';
import { type LoopbackCarrier, startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { AGENT, CUSTOMER, type Platform, startPlatform } from './platform.ts';

interface Gateways {
  platform: Platform;
  second: LoopbackCarrier;
}

/** A trunk over two carriers with the same phones. */
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

describe('trunk with two gateways', () => {
  it('uses the first gateway', async () => {
    const gateways = await startGateways();
    await talk(gateways);
    expect(gateways.platform.carrier.inviteCounts.get(AGENT)).toBe(1);
    expect(gateways.second.inviteCounts.size).toBe(0);
  });

  it('fails over on 503, and skips the first gateway until its Retry-After has passed', async () => {
    const gateways = await startGateways();
    const { carrier } = gateways.platform;
    for (const number of [AGENT, CUSTOMER]) carrier.failures.set(number, 503);
    carrier.retryAfterS = 60;
    await talk(gateways);
    expect([carrier.inviteCounts.get(AGENT), carrier.inviteCounts.get(CUSTOMER)]).toEqual([1, undefined]);
    expect([...gateways.second.inviteCounts.values()]).toEqual([1, 1]);
  });

  it('fails over when the first gateway is silent', async () => {
    const gateways = await startGateways();
    await gateways.platform.tandem.probeTrunks();
    gateways.platform.carrier.isSilent = true;
    await talk(gateways);
    expect([...gateways.second.inviteCounts.values()]).toEqual([1, 1]);
  });

  it('fails over when the first gateway does not listen', async () => {
    const gateways = await startGateways();
    await gateways.platform.carrier.stop();
    await talk(gateways);
    expect([...gateways.second.inviteCounts.values()]).toEqual([1, 1]);
  });
});

describe('trunk that is down', () => {
  it('places calls at once when its address is corrected', async () => {
    await using platform = await startPlatform();
    await platform.parties();
    const path = `/dialer/trunks/${platform.trunkId}`;
    // Nothing listens at port 9.
    await platform.ask('PATCH', path, { sip_uri: 'sip:127.0.0.1:9' });
    for (let round = 0; round < 2; round++) await platform.tandem.probeTrunks();
    const call = { agent_number: AGENT, customer_number: CUSTOMER };
    const refused = await platform.ask('POST', '/dialer/click2call', call);
    expect(refused.body.code).toBe('CARRIER_LINE_DOWN');
    await platform.ask('PATCH', path, { sip_uri: platform.carrier.sipUri });
    const { call_id } = await platform.place();
    await platform.until(call_id, 'call.bridged');
  });
});

describe('trunk whose carrier uses SRV records', () => {
  it('calls the first responding server', async () => {
    const second = await startLoopbackCarrier({ recordRoute: true, domain: 'carrier.example' });
    onTestFinished(() => second.stop());
    const [, port] = /:(\d+)$/.exec(second.sipUri)!;
    // Nothing listens at port 9 of the first server.
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
