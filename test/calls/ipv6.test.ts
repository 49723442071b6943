import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { differs } from '../sip/drachtio-endpoint.ts';
import { AGENT_HZ, CUSTOMER_HZ, startPlatform } from './platform.ts';

const HOST = '::1';
const hasIpv6 = Object.values(networkInterfaces()).some((entries) => entries?.some(({ address }) => address === HOST));

it.skipIf(!hasIpv6 || differs('addresses'))(
  'calls, transports audio and records over IPv6 only (needs ::1)',
  async () => {
    await using platform = await startPlatform({
      env: { SIP_HOST: HOST, RTP_HOST: HOST },
      carrier: { host: HOST },
    });
    const { agent, customer } = await platform.parties({ agent: { host: HOST }, customer: { host: HOST } });
    const { call_id: callId } = await platform.place({ record: true });
    await platform.until(callId, 'call.bridged');
    await agent.untilReceived(({ packets }) => packets > 60);
    await customer.untilReceived(({ packets }) => packets > 60);
    await agent.untilTone(CUSTOMER_HZ);
    await customer.untilTone(AGENT_HZ);
    expect(agent.call.remote).toMatchObject({ host: HOST });
    customer.hangup();
    await platform.ended(callId);
    expect((await platform.call(callId)).state).toBe('completed');
    expect((await platform.recordingOf(callId)).durationMs).toBeGreaterThan(1000);
  },
);
