import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import { eventually } from '../eventually.ts';
import { startBaresip } from '../peers/baresip.ts';
import { type Kamailio, startKamailio } from '../peers/kamailio.ts';
import { peerAvailable } from '../peers/programs.ts';
import { differs } from '../sip/drachtio-endpoint.ts';
import { type Softphone, startSoftphone } from '../softphone/softphone.ts';
import { AGENT, AGENT_HZ, CUSTOMER, CUSTOMER_HZ, DID, type Platform, startPlatform } from './platform.ts';

const ACCOUNT = { username: 'tandem', password: 's3cret' };

const TRANSPORTS = (['udp', 'tcp', 'tls'] as const).filter((name) => name !== 'tls' || !differs('certificates'));

describe.skipIf(!(peerAvailable('kamailio') && peerAvailable('baresip')))('Kamailio as a carrier', () => {
  let kamailio: Kamailio;
  let platform: Platform;
  let agent: Softphone;
  let customer: Softphone;

  beforeAll(async () => {
    const tone = (frequencyHz: number) => ({ audio: { kind: 'tone', frequencyHz } as const });
    agent = await startSoftphone({ name: 'agent', user: AGENT, ...tone(AGENT_HZ) });
    customer = await startSoftphone({ name: 'customer', user: CUSTOMER, ...tone(CUSTOMER_HZ) });
    const routes = { [AGENT]: agent.address, [CUSTOMER]: customer.address };
    kamailio = await startKamailio({ ...ACCOUNT, routes, registeredNumber: DID });
    platform = await startPlatform({ env: { SIP_TLS_CA: kamailio.caFile }, trunk: ACCOUNT });
  });

  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
    await Promise.all([agent?.stop(), customer?.stop()]);
    await kamailio?.stop();
  });

  async function change(trunk: Record<string, unknown>): Promise<void> {
    const { status } = await platform.ask('PATCH', `/dialer/trunks/${platform.trunkId}`, trunk);
    expect(status).toBe(200);
  }

  async function expectTalk(callId: string): Promise<void> {
    await platform.until(callId, 'call.bridged');
    for (const [phone, frequencyHz] of [
      [agent, CUSTOMER_HZ],
      [customer, AGENT_HZ],
    ] as const) {
      await phone.untilTone(frequencyHz);
    }
  }

  it.each(TRANSPORTS)(
    'authenticates a call over %s, stays in its path, and relays hold and hang-up',
    async (transport) => {
      await change({ sip_uri: transport === 'tls' ? kamailio.tlsUri : kamailio.sipUri, transport });
      const { call_id: callId } = await platform.place();
      await expectTalk(callId);
      const hold = await platform.ask('POST', `/dialer/click2call/${callId}/hold`, { leg: 'customer' });
      expect(hold.status).toBe(200);
      await customer.until('reinvite', (event) => event.callId === customer.call.callId);
      customer.hangup();
      const events = await platform.ended(callId);
      expect(events.at(-1)).toMatchObject({ event: 'call.completed', leg: 'customer' });
      const { callId: sipCallId } = agent.call;
      await agent.until('bye', (event) => event.callId === sipCallId && event.by === 'peer');
    },
  );

  it.each(['udp', 'tls'] as const)('accepts a registration over %s, and routes calls to it', async (transport) => {
    const sip_uri = transport === 'tls' ? kamailio.tlsUri : kamailio.sipUri;
    const changedAtMs = Date.now();
    await change({ sip_uri, transport, register: true });
    await eventually(async () => {
      const path = `/dialer/trunks/${platform.trunkId}`;
      const { body } = await platform.ask<{ registration?: { registered_at: string | null } }>('GET', path);
      expect(Date.parse(body.data.registration?.registered_at ?? '')).toBeGreaterThan(changedAtMs);
    });
    const rule = { action: 'forward', endpoint: { type: 'phone', number: AGENT } };
    const number = encodeURIComponent(DID);
    expect((await platform.ask('PUT', `/dialer/numbers/${number}/inbound`, rule)).status).toBe(200);
    await using caller = await startBaresip({ user: CUSTOMER });
    await caller.dial(kamailio.sipUri.replace('sip:', `sip:${DID}@`));
    const callId = await eventually(async () => {
      const { body } = await platform.ask<{ calls: PublicCall[] }>('GET', '/dialer/click2call?limit=1');
      const [call] = body.data.calls;
      expect(call).toMatchObject({ direction: 'inbound', call_done: false });
      return call!.call_id;
    });
    await platform.until(callId, 'call.bridged');
    agent.hangup();
    await platform.ended(callId);
    await change({ register: false });
  });

  it('rejects a registration with a wrong password', async () => {
    await change({ sip_uri: kamailio.sipUri, transport: 'udp', register: true, password: 'wrong' });
    await eventually(async () => {
      const { body } = await platform.ask('GET', `/dialer/trunks/${platform.trunkId}`);
      expect(body.data).toMatchObject({
        registration: { state: 'failed', last_error: expect.stringContaining('401') },
      });
    });
  });
});
