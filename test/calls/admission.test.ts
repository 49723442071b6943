import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import { startEmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';
import { walletOf } from '../../storage/ledger.ts';
import { eventually, untilTruthy } from '../eventually.ts';
import { AGENT, CUSTOMER, SECRET, startPlatform } from './platform.ts';

const PLACEMENT = { agent_number: AGENT, customer_number: CUSTOMER };

describe('reference of a placement', () => {
  it('dials once for simultaneous placements', async () => {
    await using platform = await startPlatform();
    await platform.parties({ agent: { answer: 'manual' } });
    // Repeats a placement that a busy server rejected.
    const place = async () => {
      const placement = { ...PLACEMENT, reference_id: 'order-1' };
      for (;;) {
        const answer = await platform.ask<{ call: PublicCall }>('POST', '/dialer/click2call', placement);
        if (answer.status !== 503) return answer;
      }
    };
    const answers = await Promise.all(Array.from({ length: 100 }, place));
    const count = (status: number) => answers.filter((answer) => answer.status === status).length;
    expect([count(201), count(200)]).toEqual([1, 99]);
    const callIds = new Set(answers.map(({ body }) => body.data.call.call_id));
    expect(callIds.size).toBe(1);
    await platform.until([...callIds][0] as string, 'agent.ringing');
    expect(platform.carrier.inviteCounts.get(AGENT)).toBe(1);
  });

  it('stays used after its call, even a failed one', async () => {
    await using platform = await startPlatform();
    await platform.parties({ agent: { answer: { status: 486 } } });
    const call = await platform.place({ reference_id: 'order-2' });
    await platform.ended(call.call_id);
    const again = await platform.ask('POST', '/dialer/click2call', { ...PLACEMENT, reference_id: 'order-2' });
    expect(again).toMatchObject({ status: 409, body: { code: 'REFERENCE_ALREADY_USED' } });
    expect(platform.carrier.inviteCounts.get(AGENT)).toBe(1);
  });

  it('stays available after a refusal for lack of channels', async () => {
    await using platform = await startPlatform({ trunk: { channels: 1 } });
    await platform.parties({ agent: { answer: 'manual' } });
    const first = await platform.place();
    const refused = await platform.ask('POST', '/dialer/click2call', { ...PLACEMENT, reference_id: 'order-3' });
    expect(refused).toMatchObject({ status: 429, body: { code: 'no_free_channel', retry_after: expect.any(Number) } });
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    await platform.ask('POST', `/dialer/click2call/${first.call_id}/hangup`);
    expect(await platform.place({ reference_id: 'order-3' })).toMatchObject({
      reference_id: 'order-3',
      state: 'initiated',
    });
  });

  it('becomes available again after a refusal for lack of media ports', async () => {
    // Four ports serve one session.
    await using platform = await startPlatform({ env: { RTP_PORT_MIN: '39990', RTP_PORT_MAX: '39993' } });
    await platform.parties({ agent: { answer: 'manual' } });
    const first = await platform.place();
    const refused = await platform.ask('POST', '/dialer/click2call', { ...PLACEMENT, reference_id: 'order-4' });
    expect(refused).toMatchObject({ status: 429, body: { code: 'no_free_channel' } });
    // The first INVITE may still be on its way.
    await untilTruthy(() => platform.carrier.inviteCounts.has(AGENT), 'the agent is rung');
    expect(platform.carrier.inviteCounts.get(AGENT)).toBe(1);
    await platform.ask('POST', `/dialer/click2call/${first.call_id}/hangup`);
    // The ports are free once the media worker has closed the session.
    const again = await eventually(() => platform.place({ reference_id: 'order-4' }));
    expect(again).toMatchObject({ state: 'initiated' });
    expect((await walletOf(platform.sql, platform.tandem.workspaceId)).heldNano).toBeGreaterThan(0n);
  });
});

describe('refused placement', () => {
  it('names the operator limit and when to retry', async () => {
    const env = { BLOCKED_PREFIXES: '+9197', DESTINATION_LIMITS: '+9198:1', DAILY_SPEND_CAP_USD: '100' };
    await using platform = await startPlatform({ env });
    await platform.parties({ agent: { answer: 'manual' } });
    const blocked = { ...PLACEMENT, customer_number: '+919700000001' };
    const first = await platform.ask('POST', '/dialer/click2call', blocked);
    expect(first).toMatchObject({ status: 403, body: { code: 'DESTINATION_BLOCKED' } });
    await platform.place();
    const limited = await platform.ask('POST', '/dialer/click2call', { ...PLACEMENT, reference_id: 'order-9' });
    expect(limited).toMatchObject({ status: 429, body: { code: 'DESTINATION_RATE_LIMITED' } });
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    const rules = await platform.ask('GET', '/dialer/calling-rules');
    expect(rules.body.data).toMatchObject({
      operator_limits: { daily_spend_cap_usd: 100, blocked_prefixes: ['+9197'] },
    });
  });

  it('fails with C2C_RATE_LIMITED and Retry-After after 20 calls in a minute', async () => {
    await using platform = await startPlatform();
    await platform.phone(AGENT, { answer: { status: 486 } });
    for (let calls = 0; calls < 20; calls += 1) await platform.place();
    const refused = await platform.ask('POST', '/dialer/click2call', PLACEMENT);
    expect(refused).toMatchObject({ status: 429, body: { code: 'C2C_RATE_LIMITED' } });
    const retryAfterS = Number(refused.headers.get('retry-after'));
    expect(retryAfterS).toBeGreaterThan(0);
    expect(retryAfterS).toBeLessThanOrEqual(60);
  });

  it('fails with RECHARGE_REQUIRED without dialing when the wallet is empty', async () => {
    await using platform = await startPlatform({ balanceNano: 1n });
    await platform.parties({ agent: { answer: 'manual' } });
    // Holds the last nano-dollar.
    await platform.place();
    const refused = await platform.ask('POST', '/dialer/click2call', PLACEMENT);
    expect(refused).toMatchObject({ status: 402, body: { code: 'RECHARGE_REQUIRED', success: false } });
    await untilTruthy(() => platform.carrier.inviteCounts.has(AGENT), 'the agent is rung');
    expect(platform.carrier.inviteCounts.get(AGENT)).toBe(1);
  });

  it('fails with CARRIER_LINE_DOWN while the carrier is silent, and succeeds when it returns', async () => {
    await using platform = await startPlatform();
    await platform.parties({ agent: { answer: 'manual' } });
    await platform.tandem.probeTrunks();
    platform.carrier.isSilent = true;
    await platform.tandem.probeTrunks();
    await platform.tandem.probeTrunks();
    const refused = await platform.ask('POST', '/dialer/click2call', { ...PLACEMENT, reference_id: 'order-5' });
    expect(refused).toMatchObject({ status: 503, body: { code: 'CARRIER_LINE_DOWN' } });
    platform.carrier.isSilent = false;
    await platform.tandem.probeTrunks();
    expect(await platform.place({ reference_id: 'order-5' })).toMatchObject({ reference_id: 'order-5' });
  });

  it('does not result from ignored OPTIONS while the carrier answers calls', async () => {
    await using platform = await startPlatform({ carrier: { ignoresOptions: true } });
    await platform.phone(AGENT, { answer: { status: 486 } });
    for (let round = 0; round < 2; round += 1) await platform.tandem.probeTrunks();
    const path = `/dialer/trunks/${platform.trunkId}`;
    expect((await platform.ask('GET', path)).body.data).toMatchObject({
      reachability: { state: 'unknown', since: null, reason: 'options_not_answered' },
    });
    const first = await platform.place();
    await platform.ended(first.call_id);
    await untilTruthy(async () => {
      const { data } = (await platform.ask('GET', path)).body as { data: { reachability?: { reason?: string } } };
      return data.reachability?.reason === 'call_answered';
    }, 'the carrier is up');
    for (let round = 0; round < 2; round += 1) await platform.tandem.probeTrunks();
    expect(await platform.place()).toMatchObject({ state: 'initiated' });
  });

  it('fails with INVALID_CALLBACK_URL for an internal callback outside CALLBACK_ALLOW_CIDRS', async () => {
    await using platform = await startPlatform({ env: { CALLBACK_ALLOW_CIDRS: '' } });
    const refused = await platform.ask('POST', '/dialer/click2call', {
      ...PLACEMENT,
      callback_url: 'https://169.254.169.254/latest',
      callback_secret: SECRET,
    });
    expect(refused).toMatchObject({ status: 400, body: { code: 'INVALID_CALLBACK_URL' } });
  });

  it('fails with SHUTTING_DOWN during a drain, which lets the live call finish', async () => {
    await using platform = await startPlatform();
    const { agent } = await platform.parties();
    const call = await platform.place();
    await platform.until(call.call_id, 'call.bridged');
    await agent.until('confirmed');
    const stopped = platform.tandem.stop({ graceMs: 20_000 });
    const refused = await platform.ask('POST', '/dialer/click2call', { ...PLACEMENT, reference_id: 'late' });
    expect(refused).toMatchObject({ status: 503, body: { code: 'SHUTTING_DOWN' } });
    expect((await platform.ask('GET', '/readyz')).status).toBe(503);
    agent.hangup();
    await stopped;
    const rows = await platform.sql`select state, hangup_cause from calls`;
    expect(rows).toMatchObject([{ state: 'completed', hangupCause: 'NORMAL_CLEARING' }]);
  });
});

describe('missing SIP server', () => {
  it('causes C2C_NOT_CONFIGURED and health status 503 until it appears', async () => {
    const secret = 'the-secret-of-a-later-server';
    const controlPort = await freePort();
    await using platform = await startPlatform({
      env: { DRACHTIO_HOST: '127.0.0.1', DRACHTIO_PORT: String(controlPort), DRACHTIO_SECRET: secret },
    });
    await platform.parties();
    const refused = await platform.ask('POST', '/dialer/click2call', { ...PLACEMENT, reference_id: 'early' });
    expect(refused).toMatchObject({ status: 503, body: { code: 'C2C_NOT_CONFIGURED' } });
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    expect((await platform.ask('GET', '/readyz')).status).toBe(503);

    const server = await startSipServer(secret);
    const forwarder = await forwardPort(controlPort, server.controlPort);
    await untilTruthy(async () => (await platform.ask('GET', '/readyz')).status === 200, 'the SIP server is found');
    expect(await platform.place({ reference_id: 'early' })).toMatchObject({ state: 'initiated' });
    await platform.tandem.stop();
    forwarder.close();
    await server.close();
  });
});

describe('money of a call', () => {
  it('ends the call with INSUFFICIENT_FUNDS when it runs out, and is charged exactly', async () => {
    // One dollar per second; three dollars.
    await using platform = await startPlatform({ pricePerMinuteUsd: 60, balanceNano: 3_000_000_000n });
    await platform.parties();
    const call = await platform.place();
    await platform.ended(call.call_id);
    expect(await platform.call(call.call_id)).toMatchObject({
      state: 'completed',
      hangup_cause: 'INSUFFICIENT_FUNDS',
      cost_usd: 3,
    });
    expect(await walletOf(platform.sql, platform.tandem.workspaceId)).toEqual({
      balanceNano: 0n,
      heldNano: 0n,
      availableNano: 0n,
    });
  });
});

describe('loss of the SIP server', () => {
  it('ends and settles live calls', async () => {
    const secret = 'the-secret-of-a-separate-server';
    const server = await startSipServer(secret);
    await using platform = await startPlatform({
      env: { DRACHTIO_HOST: '127.0.0.1', DRACHTIO_PORT: String(server.controlPort), DRACHTIO_SECRET: secret },
    });
    await platform.parties();
    const call = await platform.place();
    await platform.until(call.call_id, 'call.bridged');
    await server.close();
    await platform.ended(call.call_id);
    expect(await platform.call(call.call_id)).toMatchObject({
      state: 'completed',
      hangup_cause: 'NETWORK_OUT_OF_ORDER',
      billing_status: 'billed',
    });
    const refused = await platform.ask('POST', '/dialer/click2call', PLACEMENT);
    expect(refused).toMatchObject({ status: 503, body: { code: 'CARRIER_LINE_DOWN' } });
  });
});

function startSipServer(secret: string) {
  return startEmbeddedSipServer({
    sipHost: '127.0.0.1',
    sipPort: 0,
    transports: ['udp', 'tcp'],
    secret,
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Forwards a fixed port to the one that the embedded server chose. */
async function forwardPort(from: number, to: number): Promise<Server> {
  const server = createServer((client) => {
    const upstream = connect(to, '127.0.0.1');
    client.pipe(upstream).pipe(client);
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
  }).listen(from, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
