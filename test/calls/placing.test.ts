import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import type { CallEvent } from '../../bin/cli/api-client.ts';
import { header } from '../../sip/message/index.ts';
import { walletOf } from '../../storage/ledger.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { AGENT_HZ, CUSTOMER_HZ, DID, type Platform, SECRET, startPlatform } from './platform.ts';

let platform: Platform;

beforeAll(async () => {
  platform = await startPlatform();
});

afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

describe('call answered on both sides', () => {
  it('carries audio both ways, gets recorded on two channels, charged and reported to the integrator', async () => {
    const { agent, customer } = await platform.parties();
    const placed = await platform.place({
      record: true,
      reference_id: 'whole-story',
      callback_url: platform.receiver.url,
      callback_secret: SECRET,
      metadata: { ticket: 4711, nested: { Ünïcode: ['✓'] } },
    });
    expect(placed).toMatchObject({ state: 'initiated', call_done: false, did: DID, callback_secret_last4: 'ests' });
    await platform.until(placed.call_id, 'recording.started');
    await Promise.all([
      agent.untilReceived(({ packets }) => packets > 100),
      customer.untilReceived(({ packets }) => packets > 100),
    ]);
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
    const callback = await platform.receiver.callbackOf(placed.call_id);

    const [customerAtAgent = 0, agentAtAgent = 0] = agent.received().toneLevels([CUSTOMER_HZ, AGENT_HZ], 1_000);
    const [agentAtCustomer = 0, customerAtCustomer = 0] = customer
      .received()
      .toneLevels([AGENT_HZ, CUSTOMER_HZ], 1_000);
    expect(customerAtAgent).toBeGreaterThan(-20);
    expect(agentAtCustomer).toBeGreaterThan(-20);
    expect(agentAtAgent).toBeLessThan(-60);
    expect(customerAtCustomer).toBeLessThan(-60);

    const path = `/dialer/click2call/${placed.call_id}?refresh=1`;
    const { call } = (await platform.ask<{ call: PublicCall }>('GET', path)).body.data;
    expect(call).toMatchObject({
      state: 'completed',
      call_done: true,
      terminal_event: 'call.completed',
      hangup_cause: 'NORMAL_CLEARING',
      metadata: { ticket: 4711, nested: { Ünïcode: ['✓'] } },
      recording_status: 'uploaded',
      recording_available: true,
      billing_status: 'billed',
    });
    expect(call.cost_usd).toBeCloseTo((call.talk_seconds ?? 0) * 0.01, 9);
    expect(await walletOf(platform.sql, platform.tandem.workspaceId)).toMatchObject({ heldNano: 0n });

    expect(callback.verified).toEqual({ ok: true });
    expect(callback.body).toMatchObject({ event: 'call.completed', data: { call: { call_id: placed.call_id } } });
    expect(() => new Webhook(SECRET, { format: 'raw' }).verify(callback.rawBody, callback.headers)).not.toThrow();

    const { left, right, durationMs } = await platform.recordingOf(placed.call_id);
    expect(durationMs).toBeGreaterThan(1_500);
    expect(toneLevelDbov(left, AGENT_HZ)).toBeGreaterThan(-20);
    expect(toneLevelDbov(left, CUSTOMER_HZ)).toBeLessThan(-60);
    expect(toneLevelDbov(right, CUSTOMER_HZ)).toBeGreaterThan(-20);
    expect(toneLevelDbov(right, AGENT_HZ)).toBeLessThan(-60);
  });

  it('presents the DID on both legs', async () => {
    const { agent, customer } = await platform.parties();
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    for (const phone of [agent, customer]) {
      const invite = await phone.until('invite');
      expect(invite.from).toBe(DID);
      expect(invite.assertedIdentity).toContain(`${DID}@`);
    }
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
  });

  it('keeps the carrier in the path of every later request', async () => {
    const { agent } = await platform.parties();
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
    const bye = await platform.carrier.log.until(
      'request',
      ({ method, message }) => method === 'BYE' && header(message, 'Call-ID') === agent.call.callId,
    );
    expect(bye.method).toBe('BYE');
  });

  for (const party of ['agent', 'customer'] as const) {
    it(`ends when the ${party} hangs up, and hangs up the other party`, async () => {
      const parties = await platform.parties();
      const placed = await platform.place();
      await platform.until(placed.call_id, 'call.bridged');
      await parties[party].until('confirmed');
      parties[party].hangup();
      const other = party === 'agent' ? parties.customer : parties.agent;
      expect(await other.until('bye')).toMatchObject({ by: 'peer' });
      await platform.ended(placed.call_id);
      expect(await platform.call(placed.call_id)).toMatchObject({
        state: 'completed',
        hangup_cause: 'NORMAL_CLEARING',
        leg: party,
      });
    });
  }

  it('emits the same events live and afterwards, in order without gaps', async () => {
    await platform.parties();
    const placed = await platform.place();
    const live = platform.ended(placed.call_id);
    await platform.until(placed.call_id, 'call.bridged');
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
    const path = `/dialer/click2call/${placed.call_id}/events`;
    const { events: stored } = (await platform.ask<{ events: CallEvent[] }>('GET', path)).body.data;
    expect((await live).map(({ sequence, event }) => [sequence, event])).toEqual(
      stored.map(({ sequence, event }) => [sequence, event]),
    );
    expect(stored.map(({ sequence }) => sequence)).toEqual(stored.map((_, index) => index + 1));
    expect(stored.map(({ event }) => event)).toEqual([
      'call.pending',
      'call.initiated',
      'agent.ringing',
      'agent.answered',
      'customer.dialing',
      'customer.ringing',
      'call.bridged',
      'call.completed',
    ]);
  });

  it('plays ringback to the agent while the customer rings', async () => {
    const { agent, customer } = await platform.parties({ customer: { answer: 'manual' } });
    const placed = await platform.place();
    await platform.until(placed.call_id, 'customer.ringing');
    await agent.untilReceived(({ packets }) => packets > 60);
    const [low = -96, high = -96] = agent.received().toneLevels([400, 450]);
    expect(low).toBeGreaterThan(-30);
    expect(high).toBeGreaterThan(-30);
    customer.answer();
    await platform.until(placed.call_id, 'call.bridged');
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
  });

  it("plays the customer's early media to the agent", async () => {
    const { agent } = await platform.parties({ customer: { answer: 'manual', earlyMedia: true } });
    const placed = await platform.place();
    await platform.until(placed.call_id, 'customer.early_media');
    await agent.untilReceived(({ packets }) => packets > 60);
    await agent.untilTone(CUSTOMER_HZ, -20);
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
  });

  it('transcodes between a PCMA agent and a PCMU customer', async () => {
    const { agent, customer } = await platform.parties({ agent: { codecs: ['PCMA'] }, customer: { codecs: ['PCMU'] } });
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    await agent.untilReceived(({ packets }) => packets > 120);
    await customer.untilReceived(({ packets }) => packets > 120);
    await agent.untilTone(CUSTOMER_HZ);
    await customer.untilTone(AGENT_HZ);
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
    expect((await platform.call(placed.call_id)).quality).toMatchObject({
      agent: { codec: 'PCMA' },
      customer: { codec: 'PCMU' },
    });
  });

  it('forwards DTMF from the customer to the agent', async () => {
    const { agent, customer } = await platform.parties();
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    await customer.untilReceived(({ packets }) => packets > 10);
    customer.sendDtmf('42#');
    await agent.untilReceived(({ digits }) => digits === '42#');
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
  });
});
