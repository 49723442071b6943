import { describe, expect, it } from 'vitest';
import { eventually } from '../eventually.ts';
import { openGate } from '../storage/gate.ts';
import { createTestRedis, redisIsReachable } from '../storage/test-redis.ts';
import { metricsOf } from './metrics-of.ts';
import { startOtlpReceiver, treeOf } from './otlp-receiver.ts';
import { AGENT, CUSTOMER, DID, type Platform, SECRET, startPlatform } from './platform.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CLIENT_SPAN = 'b7ad6b7169203331';

/** Numbers of the call in any notation. */
const NUMBERS = [AGENT, CUSTOMER, DID].map((number) => number.slice(-10));

async function placeTraced(platform: Platform, body: Record<string, unknown> = {}): Promise<string> {
  const response = await fetch(`${platform.tandem.url}/dialer/click2call`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${platform.tandem.mintedApiKey}`,
      'content-type': 'application/json',
      traceparent: `00-${TRACE}-${CLIENT_SPAN}-01`,
    },
    body: JSON.stringify({ agent_number: AGENT, customer_number: CUSTOMER, ...body }),
  });
  const { data } = (await response.json()) as { data: { call: { call_id: string } } };
  return data.call.call_id;
}

async function talkAndHangUp(platform: Platform, body: Record<string, unknown> = {}): Promise<void> {
  const { agent } = await platform.parties();
  const callId = await placeTraced(platform, body);
  await platform.until(callId, 'call.bridged');
  await platform.untilRelayed(callId, 20);
  agent.hangup();
  await platform.ended(callId);
}

describe('metrics of a call', () => {
  it('count it, measure its legs and contain neither numbers nor ids', async () => {
    await using platform = await startPlatform();
    const { agent } = await platform.parties();
    const callback = { callback_url: platform.receiver.url, callback_secret: SECRET };
    const { call_id: callId } = await platform.place(callback);
    await platform.until(callId, 'call.bridged');
    await platform.untilRelayed(callId, 20);

    const during = await metricsOf(platform);
    expect(during.value('tandem_calls{state="bridged"}')).toBe(1);
    expect(during.value('tandem_calls{state="initiated"}')).toBe(0);
    expect(during.value('tandem_media_sessions')).toBe(1);
    expect(during.value('tandem_wallet_holds')).toBe(1);
    expect(during.value('tandem_wallet_held_usd')).toBeGreaterThan(0);
    expect(during.value('tandem_media_worker_busy_ratio{worker="0"}')).toBeGreaterThanOrEqual(0);
    expect(during.value('tandem_media_worker_late_seconds{worker="0"}')).toBeGreaterThanOrEqual(0);
    expect(during.value('tandem_call_first_invite_seconds_count')).toBe(1);
    expect(during.value('tandem_call_answer_seconds_count')).toBe(1);

    agent.hangup();
    await platform.ended(callId);
    const after = await eventually(async () => {
      const metrics = await metricsOf(platform);
      expect(metrics.value('tandem_deliveries_total{kind="callback",outcome="delivered"}')).toBe(1);
      return metrics;
    });
    expect(after.value('tandem_calls{state="bridged"}')).toBe(0);
    expect(after.value('tandem_placements_total{outcome="placed"}')).toBe(1);
    expect(after.value('tandem_call_attempts_total{direction="outbound"}')).toBe(1);
    expect(after.value('tandem_call_answers_total{direction="outbound"}')).toBe(1);
    expect(after.value('tandem_calls_ended_total{state="completed",hangup_cause="NORMAL_CLEARING"}')).toBe(1);
    for (const leg of ['agent', 'customer']) {
      const labels = `leg="${leg}",transport="sip",direction="outbound"`;
      expect(after.value(`tandem_leg_attempts_total{${labels}}`)).toBe(1);
      expect(after.value(`tandem_leg_answers_total{${labels}}`)).toBe(1);
      expect(after.value(`tandem_rtp_packets_received_total{leg="${leg}"}`)).toBeGreaterThanOrEqual(20);
      expect(after.value(`tandem_rtp_packets_lost_total{leg="${leg}"}`)).toBe(0);
      expect(after.value(`tandem_rtp_jitter_seconds_count{leg="${leg}"}`)).toBe(1);
      expect(after.value(`tandem_rtp_mos_count{leg="${leg}"}`)).toBe(1);
    }
    expect(after.value('tandem_wallet_holds')).toBe(0);
    expect(after.value('tandem_wallet_held_usd')).toBe(0);
    expect(after.value('tandem_jobs{queue="deliveries",state="waiting"}')).toBeGreaterThanOrEqual(0);
    expect(after.value('tandem_database_pool_size')).toBe(16);
    expect(after.value('tandem_database_connections{state="idle"}')).toBeGreaterThan(0);
    expect(after.value('tandem_dependency_up{dependency="database"}')).toBe(1);
    expect(after.value('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
    expect(after.value('process_resident_memory_bytes')).toBeGreaterThan(0);
    for (const secret of [...NUMBERS, callId, platform.tandem.workspaceId]) expect(after.text).not.toContain(secret);
  });

  it('start at zero for every series that alerts use, so that the first event counts', async () => {
    await using platform = await startPlatform();
    const { value } = await metricsOf(platform);
    for (const kind of ['callback', 'webhook']) {
      for (const outcome of ['failed', 'gone']) {
        expect(value(`tandem_deliveries_total{kind="${kind}",outcome="${outcome}"}`)).toBe(0);
      }
    }
    expect(value('tandem_placements_total{outcome="no_free_channel"}')).toBe(0);
    expect(value('tandem_call_attempts_total{direction="inbound"}')).toBe(0);
  });

  it('count a refused placement by its code, and not as an attempt', async () => {
    await using platform = await startPlatform();
    const refused = await platform.ask('POST', '/dialer/click2call', {
      agent_number: AGENT,
      customer_number: CUSTOMER,
      did: '+911140000009',
    });
    expect(refused.body.code).toBe('CALLER_ID_NOT_OWNED');
    const { value } = await metricsOf(platform);
    expect(value('tandem_placements_total{outcome="CALLER_ID_NOT_OWNED"}')).toBe(1);
    expect(value('tandem_call_attempts_total{direction="outbound"}')).toBe(0);
  });
});

describe.skipIf(!(await redisIsReachable()))('platform without Redis', () => {
  it('stays alive, reports not ready until Redis returns, and serves the other metrics', async () => {
    await using redis = await createTestRedis();
    const gate = await openGate(redis.url);
    await using platform = await startPlatform({ env: { REDIS_URL: gate.url } });
    const readiness = async () => await platform.ask('GET', '/readyz');
    expect((await readiness()).status).toBe(200);
    await gate.shut();
    const refused = await eventually(async () => {
      const answer = await readiness();
      expect(answer.status).toBe(503);
      return answer;
    });
    expect(refused.body).toMatchObject({ code: 'NOT_READY', message: 'Not ready. redis: It cannot be reached.' });
    expect((await platform.ask('GET', '/healthz')).status).toBe(200);
    const { text, value } = await metricsOf(platform);
    expect(value('tandem_dependency_up{dependency="redis"}')).toBe(0);
    expect(value('tandem_dependency_up{dependency="database"}')).toBe(1);
    expect(text).not.toContain('tandem_jobs{');
    await gate.open();
    await eventually(async () => expect((await readiness()).status).toBe(200));
    await platform.tandem.stop();
    await gate.shut();
  });
});

describe('trace of a call', () => {
  it("covers request, admission, legs, media and settlement below the client's span", async () => {
    await using receiver = await startOtlpReceiver();
    await using platform = await startPlatform({
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector,x-tenant=a',
      },
    });
    await talkAndHangUp(platform, { record: true });
    const spans = await eventually(() => {
      const ofTrace = receiver.spans.filter(({ traceId }) => traceId === TRACE);
      expect(ofTrace.map(({ name }) => name)).toContain('call');
      return ofTrace;
    });
    expect(treeOf(spans, CLIENT_SPAN)).toEqual([
      'POST /dialer/click2call',
      '  call.admission',
      '  call',
      '    media',
      '    leg agent',
      '    leg customer',
      '    call.settlement',
    ]);
    const named = (name: string) => spans.find((span) => span.name === name)!;
    const attributesOf = (name: string) =>
      Object.fromEntries(named(name).attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));
    expect(attributesOf('POST /dialer/click2call')).toEqual({
      'http.request.method': 'POST',
      'http.route': '/dialer/click2call',
      'http.response.status_code': 201,
    });
    expect(attributesOf('call')).toMatchObject({
      'tandem.call.state': 'completed',
      'tandem.call.hangup_cause': 'NORMAL_CLEARING',
      'tandem.call.direction': 'outbound',
    });
    expect(attributesOf('leg customer')).toMatchObject({
      'tandem.leg.transport': 'sip',
      'tandem.leg.hangup_cause': 'NORMAL_CLEARING',
    });
    expect(named('leg agent').events.map(({ name }) => name)).toContain('leg.answered');
    expect(named('call').events.map(({ name }) => name)).toEqual(['call.bridged']);
    expect(BigInt(named('call.settlement').startTimeUnixNano)).toBeGreaterThan(
      BigInt(named('leg customer').startTimeUnixNano),
    );
    expect(receiver.headers).toMatchObject({
      ...{ 'content-type': 'application/json', url: '/v1/traces' },
      ...{ authorization: 'Bearer collector', 'x-tenant': 'a' },
    });
    const sent = receiver.bodies.join();
    for (const secret of [...NUMBERS, platform.tandem.mintedApiKey!]) expect(sent).not.toContain(secret);
  });

  it('marks the refused leg', async () => {
    await using receiver = await startOtlpReceiver();
    await using platform = await startPlatform({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } });
    // The carrier has no phone for either number.
    const callId = await placeTraced(platform);
    await platform.ended(callId);
    await platform.tandem.stop();
    const spans = receiver.spans.filter(({ traceId }) => traceId === TRACE);
    expect(treeOf(spans, CLIENT_SPAN).map((name) => name.trim())).toEqual(
      expect.arrayContaining(['leg agent', 'call', 'media', 'call.settlement']),
    );
    const leg = spans.find(({ name }) => name === 'leg agent')!;
    expect(leg.status.code).toBe(2);
    expect(leg.attributes.find(({ key }) => key === 'tandem.sip.status')?.value.intValue).toBeGreaterThanOrEqual(400);
  });

  it("follows the client's decision not to sample it", async () => {
    await using receiver = await startOtlpReceiver();
    await using platform = await startPlatform({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } });
    const traceparent = `00-${TRACE}-${CLIENT_SPAN}-00`;
    const headers = { authorization: `Bearer ${platform.tandem.mintedApiKey}`, traceparent };
    await fetch(`${platform.tandem.url}/dialer/pool`, { headers });
    await platform.tandem.stop();
    expect(receiver.spans.filter(({ traceId }) => traceId === TRACE)).toEqual([]);
  });

  it('does not affect calls when the collector is away', async () => {
    await using platform = await startPlatform({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' } });
    await talkAndHangUp(platform);
    const { value } = await metricsOf(platform);
    expect(value('tandem_calls_ended_total{state="completed",hangup_cause="NORMAL_CLEARING"}')).toBe(1);
  });
});
