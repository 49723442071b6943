import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PublicSipMessage, PublicSipTrace } from '../../http/schemas/sip-message.ts';
import { untilTruthy } from '../eventually.ts';
import { differs } from '../sip/drachtio-endpoint.ts';
import { AGENT, CUSTOMER, type Platform, startPlatform } from './platform.ts';

/** The trace of a finished call, once it contains its last message. */
async function traceOf(platform: Platform, callId: string, last: (message: PublicSipMessage) => boolean) {
  await platform.ended(callId);
  return await untilTruthy(async () => {
    const { data } = (await platform.ask<PublicSipTrace>('GET', `/dialer/click2call/${callId}/sip`)).body;
    return data.messages.some(last) && data;
  });
}

const isAnswerTo = (method: string, leg: string) => (message: PublicSipMessage) =>
  message.leg === leg && message.status !== null && message.cseq?.endsWith(method) === true;

function brief({ messages }: PublicSipTrace, leg: string): string[] {
  const own = messages.filter((message) => message.leg === leg && !message.repeated);
  return own.map(({ direction, summary, cseq }) => `${direction} ${summary} / ${cseq?.split(' ')[1]}`);
}

describe('SIP messages of a call', () => {
  it.skipIf(differs('trace'))('include both legs from the INVITE to the response to the BYE', async () => {
    await using platform = await startPlatform();
    const { agent } = await platform.parties();
    const { call_id: callId } = await platform.place();
    await platform.until(callId, 'call.bridged');
    await agent.hangup();
    const trace = await traceOf(platform, callId, isAnswerTo('BYE', 'customer'));
    for (const leg of ['agent', 'customer']) {
      const shown = brief(trace, leg);
      expect(shown.slice(0, 2)).toEqual(['out INVITE / INVITE', 'in 180 Ringing / INVITE']);
      expect(shown).toContain('in 200 OK / INVITE');
      expect(shown).toContain('out ACK / ACK');
      const byAgent = leg === 'agent';
      expect(shown.slice(-2)).toEqual([
        `${byAgent ? 'in' : 'out'} BYE / BYE`,
        `${byAgent ? 'out' : 'in'} 200 OK / BYE`,
      ]);
    }
    const [first] = trace.messages;
    expect(first).toMatchObject({ offset_ms: 0, transport: 'udp', has_sdp: true });
    expect(first?.local).toBe(`127.0.0.1:${platform.sipAddress.port}`);
    expect(first?.remote).toBe(`127.0.0.1:${/:(\d+)/.exec(platform.carrier.sipUri.replace('sip:', ''))?.[1]}`);
    expect(first?.text).toContain(`X-Tandem-Call-Id: ${callId}`);
    expect(trace.messages.map(({ at }) => at)).toEqual(trace.messages.map(({ at }) => at).toSorted());
  });

  it.skipIf(differs('trace'))('include a refusing carrier with the ACKs, and omit the password', async () => {
    const account = { username: 'tandem', password: 's3cret' };
    await using platform = await startPlatform({
      carrier: { auth: { ...account, realm: 'carrier', challenge: 401 } },
      trunk: account,
    });
    await platform.phone(AGENT, { answer: { status: 503 } });
    await platform.phone(CUSTOMER);
    const { call_id: callId } = await platform.place();
    const trace = await traceOf(platform, callId, ({ method, cseq }) => method === 'ACK' && cseq !== '1 ACK');
    const shown = brief(trace, 'agent');
    expect(shown[1]).toMatch(/^in 401 .*INVITE$/);
    expect(shown.at(-1)).toBe('out ACK / ACK');
    expect(shown.at(-2)).toMatch(/^in 503 /);
    expect(brief(trace, 'customer')).toEqual([]);
    const credentials = trace.messages.map(({ text }) => /^Authorization: .*$/m.exec(text)?.[0]).filter(Boolean);
    expect(credentials[0]).toContain('username="tandem"');
    expect(credentials[0]).toMatch(/response="?\*\*\*"?/);
    expect(JSON.stringify(trace)).not.toMatch(/response=\\?"[0-9a-f]{16}/);
  });

  it('omit the keys of encrypted media', async () => {
    await using platform = await startPlatform({ trunk: { media_encryption: 'required' } });
    await platform.parties({ agent: { encryption: 'required' }, customer: { encryption: 'required' } });
    const { call_id: callId } = await platform.place();
    await platform.until(callId, 'call.bridged');
    await platform.ask('POST', `/dialer/click2call/${callId}/hangup`);
    const trace = await traceOf(platform, callId, isAnswerTo('BYE', 'customer'));
    const keys = trace.messages.flatMap(({ text }) => text.match(/inline:[^\s|]+/g) ?? []);
    expect(keys.length).toBeGreaterThanOrEqual(4);
    for (const key of keys) expect(key).toMatch(/^inline:\*+$/);
  });

  it.skipIf(differs('trace'))('go to a HEP collector, and are not stored when SIP_TRACE is off', async () => {
    const collector = createSocket('udp4');
    const received: string[] = [];
    collector.on('message', (bytes) => received.push(bytes.toString('latin1')));
    collector.bind(0, '127.0.0.1');
    await once(collector, 'listening');
    onTestFinished(() => void collector.close());
    const HEP_COLLECTOR = `127.0.0.1:${collector.address().port}`;
    await using platform = await startPlatform({ env: { SIP_TRACE: 'off', HEP_COLLECTOR } });
    await platform.phone(AGENT, { answer: { status: 486 } });
    const { call_id: callId } = await platform.place();
    await platform.ended(callId);
    await untilTruthy(() => received.some((text) => text.includes('ACK sip:')));
    expect(received.every((text) => text.startsWith('HEP3') && text.includes(callId))).toBe(true);
    await platform.tandem.stop();
    expect(await platform.sql`select * from sip_messages`).toEqual([]);
  });
});
