import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AGENT, type Platform, SECRET, startPlatform } from './platform.ts';

let platform: Platform;

beforeAll(async () => {
  platform = await startPlatform();
});

afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

describe('unbridged call', () => {
  const refusals = [
    { leg: 'agent', status: 486, terminal_event: 'call.not_answered', hangup_cause: 'USER_BUSY', error: 'agent_busy' },
    {
      leg: 'agent',
      status: 603,
      terminal_event: 'call.not_answered',
      hangup_cause: 'CALL_REJECTED',
      error: 'agent_declined',
    },
    {
      leg: 'agent',
      status: 404,
      terminal_event: 'call.failed',
      hangup_cause: 'UNALLOCATED_NUMBER',
      error: 'agent_refused',
    },
    {
      leg: 'customer',
      status: 486,
      terminal_event: 'call.not_answered',
      hangup_cause: 'USER_BUSY',
      error: 'customer_busy',
    },
    {
      leg: 'customer',
      status: 480,
      terminal_event: 'call.temporaryfailed',
      hangup_cause: 'NO_USER_RESPONSE',
      error: 'customer_unreachable',
    },
    {
      leg: 'customer',
      status: 503,
      terminal_event: 'call.temporaryfailed',
      hangup_cause: 'NORMAL_TEMPORARY_FAILURE',
      error: 'customer_unreachable',
    },
  ] as const;
  for (const { leg, status, ...expected } of refusals) {
    it(`ends as ${expected.terminal_event} when the ${leg} answers ${status}, and costs nothing`, async () => {
      await platform.parties({ [leg]: { answer: { status } } });
      const placed = await platform.place();
      await platform.ended(placed.call_id);
      expect(await platform.call(placed.call_id)).toMatchObject({
        state: 'failed',
        leg,
        ...expected,
        talk_seconds: 0,
        cost_usd: null,
        billing_status: null,
      });
    });
  }

  it('cancels an agent who does not answer within the ring timeout', async () => {
    const { agent } = await platform.parties({ agent: { answer: 'manual' } });
    const placed = await platform.place({ agent_ring_timeout: 5 });
    await agent.until('cancelled');
    await platform.ended(placed.call_id);
    expect(await platform.call(placed.call_id)).toMatchObject({
      terminal_event: 'call.not_answered',
      hangup_cause: 'NO_ANSWER',
      leg: 'agent',
    });
  });

  it('cancels the customer when the agent hangs up while the customer rings', async () => {
    const { agent, customer } = await platform.parties({ customer: { answer: 'manual' } });
    const placed = await platform.place();
    await platform.until(placed.call_id, 'customer.ringing');
    agent.hangup();
    await customer.until('cancelled');
    await platform.ended(placed.call_id);
    expect(await platform.call(placed.call_id)).toMatchObject({
      state: 'failed',
      terminal_event: 'call.not_answered',
      hangup_cause: 'ORIGINATOR_CANCEL',
      leg: 'agent',
    });
  });

  it('cancels the agent when the API hangs up while the agent rings', async () => {
    const { agent } = await platform.parties({ agent: { answer: 'manual' } });
    const placed = await platform.place();
    await platform.until(placed.call_id, 'agent.ringing');
    const { body } = await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
    await agent.until('cancelled');
    expect(body.data.call).toMatchObject({
      state: 'failed',
      call_done: true,
      hangup_cause: 'ORIGINATOR_CANCEL',
    });
  });

  it('ends an answer that crosses the CANCEL, without bridging', async () => {
    const { agent, customer } = await platform.parties({ customer: { answer: 'manual', answerOnCancel: true } });
    const placed = await platform.place();
    await platform.until(placed.call_id, 'customer.ringing');
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
    await customer.until('bye');
    await agent.until('bye');
    expect(await platform.call(placed.call_id)).toMatchObject({ state: 'failed', hangup_cause: 'ORIGINATOR_CANCEL' });
  });

  it('returns metadata unchanged in the call and its callback', async () => {
    await platform.parties({ agent: { answer: { status: 486 } } });
    const metadata = '{"z":12345678901234567890,"a":1.10,"n":-0,"e":1e2,"t":"✓","nested":[{"k":0.1}]}';
    const response = await fetch(`${platform.tandem.url}/dialer/click2call`, {
      method: 'POST',
      headers: { authorization: `Bearer ${platform.tandem.mintedApiKey}`, 'content-type': 'application/json' },
      body:
        `{"agent_number":"${AGENT}","customer_number":"+919822222222","reference_id":"digits","metadata":${metadata},` +
        `"callback_url":"${platform.receiver.url}","callback_secret":"${SECRET}"}`,
    });
    expect(await response.text()).toContain(metadata);
    const { rawBody } = await platform.receiver.callbackOf((await platform.call('digits')).call_id);
    expect(rawBody).toContain(`"metadata":${metadata}`);
  });

  it('fails for a number unknown to the carrier', async () => {
    await platform.phone(AGENT);
    const placed = await platform.place({ customer_number: '+919899999999' });
    await platform.ended(placed.call_id);
    expect(await platform.call(placed.call_id)).toMatchObject({
      terminal_event: 'call.failed',
      hangup_cause: 'UNALLOCATED_NUMBER',
      leg: 'customer',
    });
  });
});
