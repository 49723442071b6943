import { randomUUID } from 'node:crypto';
import Stripe from 'stripe';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const SECRET = 'whsec_c3RyaXBlLXRlc3Qtc2VjcmV0';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture({ stripeWebhookSecret: SECRET, rateLimits: { anonymousPerMinute: 100_000 } });
});
afterAll(() => fixture[Symbol.asyncDispose]());

interface EventOptions {
  id?: string;
  /** Seconds after the fixture's now. */
  afterS?: number;
}

function eventOf(type: string, object: object, { id = `evt_${randomUUID()}`, afterS = 0 }: EventOptions = {}) {
  const created = Math.floor(fixture.now.current.getTime() / 1000) + afterS;
  return { id, object: 'event', type, created, livemode: false, data: { object } };
}

function intentOf(workspaceId: string | undefined, more: object = {}) {
  const metadata = workspaceId === undefined ? {} : { workspace_id: workspaceId };
  return { id: `pi_${randomUUID()}`, object: 'payment_intent', amount: 2550, currency: 'usd', metadata, ...more };
}

async function send(
  event: object,
  { secret = SECRET, ageS = 0, sent }: { secret?: string; ageS?: number; sent?: string } = {},
): Promise<Answer> {
  const payload = JSON.stringify(event);
  const timestamp = Math.floor(fixture.now.current.getTime() / 1000) - ageS;
  const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp });
  const headers = { 'content-type': 'application/json', 'stripe-signature': signature };
  return await fixture.call('POST', '/billing/stripe/webhook', { as: null, body: sent ?? payload, headers });
}

async function outcomeOf(event: object): Promise<string> {
  const { status, body } = await send(event);
  expect(status).toBe(200);
  return body.data.outcome;
}

async function balanceOf(owner: Member): Promise<number> {
  return (await fixture.call('GET', '/billing/wallet', { as: owner })).body.data.balance;
}

async function paymentsOf(owner: Member) {
  return (await fixture.call('GET', '/billing/transactions', { as: owner })).body.data.transactions;
}

describe("Stripe's webhook", () => {
  it('tops up the wallet that a payment names, once, however often it is told', async () => {
    const owner = await fixture.addWorkspace();
    const event = eventOf('payment_intent.succeeded', intentOf(owner.workspaceId, { amount_received: 2500 }));
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => outcomeOf(event)));
    expect(outcomes.sort()).toEqual(['credited', ...Array(7).fill('replayed')]);
    const audited = await fixture.sql`select actor_user_id, details from audit_log where action = 'wallet.topped_up'`;
    expect(audited).toMatchObject([{ actorUserId: null, details: { by: 'stripe' } }]);
    // Stripe tells the same payment under another event id, too.
    expect(await outcomeOf({ ...event, id: 'evt_other' })).toBe('ignored');
    expect(await balanceOf(owner)).toBe(25);
    expect(await paymentsOf(owner)).toMatchObject([
      {
        amount: 25,
        currency: 'USD',
        payment_type: 'one_time',
        status: 'succeeded',
        balance_before: 0,
        balance_after: 25,
        description: 'Card payment',
      },
    ]);
  });

  it('credits a paid invoice as a subscription, wherever its metadata stands', async () => {
    const owner = await fixture.addWorkspace();
    const metadata = { workspace_id: owner.workspaceId };
    const invoice = { object: 'invoice', amount_paid: 900, amount_due: 900, currency: 'usd', metadata: {} };
    const invoices = [
      { ...invoice, id: `in_${randomUUID()}`, metadata },
      { ...invoice, id: `in_${randomUUID()}`, parent: { subscription_details: { metadata } } },
      { ...invoice, id: `in_${randomUUID()}`, parent: null, subscription_details: { metadata } },
    ];
    for (const object of invoices) expect(await outcomeOf(eventOf('invoice.paid', object))).toBe('credited');
    expect(await balanceOf(owner)).toBe(27);
    const types = (await paymentsOf(owner)).map((payment: { payment_type: string }) => payment.payment_type);
    expect(types).toEqual(['subscription', 'subscription', 'subscription']);
    const free = { ...invoice, id: `in_${randomUUID()}`, metadata, amount_paid: 0 };
    expect(await outcomeOf(eventOf('invoice.paid', free))).toBe('passed_over');
    const ofInvoice = intentOf(owner.workspaceId, { invoice: invoices[0]!.id });
    expect(await outcomeOf(eventOf('payment_intent.succeeded', ofInvoice))).toBe('passed_over');
  });

  it('keeps payments that are on their way or failed, and credits one that succeeds after all', async () => {
    const owner = await fixture.addWorkspace();
    const intent = intentOf(owner.workspaceId);
    const statuses = async () => (await paymentsOf(owner)).map(({ status }: { status: string }) => status);
    await outcomeOf(eventOf('payment_intent.processing', intent));
    expect(await statuses()).toEqual(['pending']);
    await outcomeOf(eventOf('payment_intent.payment_failed', intent, { afterS: 5 }));
    expect(await paymentsOf(owner)).toMatchObject([
      { status: 'failed', amount: 25.5, balance_before: 0, balance_after: 0 },
    ]);
    expect(await balanceOf(owner)).toBe(0);
    await outcomeOf(eventOf('payment_intent.succeeded', intent, { afterS: 9 }));
    expect(await paymentsOf(owner)).toMatchObject([{ status: 'succeeded', balance_after: 25.5 }]);
  });

  it('comes to the same end in whatever order the events of a payment arrive', async () => {
    const orders = [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ];
    for (const order of orders) {
      const owner = await fixture.addWorkspace();
      const intent = intentOf(owner.workspaceId);
      const events = [
        eventOf('payment_intent.processing', intent, { afterS: 1 }),
        eventOf('payment_intent.payment_failed', intent, { afterS: 2 }),
        eventOf('payment_intent.succeeded', intent, { afterS: 3 }),
      ];
      for (const index of order) await outcomeOf(events[index]!);
      expect(await paymentsOf(owner)).toMatchObject([{ status: 'succeeded', balance_before: 0, balance_after: 25.5 }]);
      expect(await balanceOf(owner)).toBe(25.5);

      const failing = intentOf(owner.workspaceId);
      await outcomeOf(eventOf('payment_intent.payment_failed', failing, { afterS: 2 }));
      expect(await outcomeOf(eventOf('payment_intent.processing', failing, { afterS: order[0]! }))).toBe('ignored');
      expect((await paymentsOf(owner))[0]).toMatchObject({ status: 'failed' });
    }
  });

  it('refuses other currencies: the payment is kept as failed and nothing is credited', async () => {
    const owner = await fixture.addWorkspace();
    const euros = intentOf(owner.workspaceId, { currency: 'eur', amount: 1234 });
    expect(await outcomeOf(eventOf('payment_intent.succeeded', euros))).toBe('recorded');
    const yen = intentOf(owner.workspaceId, { currency: 'jpy', amount: 1234 });
    expect(await outcomeOf(eventOf('payment_intent.succeeded', yen))).toBe('recorded');
    expect(await balanceOf(owner)).toBe(0);
    expect(await paymentsOf(owner)).toMatchObject([
      { status: 'failed', amount: 1234, currency: 'JPY' },
      {
        status: 'failed',
        amount: 12.34,
        currency: 'EUR',
        description: 'Refused: the wallet takes USD only. Card payment',
      },
    ]);
  });

  it('passes over what concerns no wallet, and answers 404 for a wallet that is not there', async () => {
    expect(await outcomeOf(eventOf('payment_intent.succeeded', intentOf(undefined)))).toBe('passed_over');
    expect(await outcomeOf(eventOf('customer.created', { id: 'cus_1' }))).toBe('passed_over');
    for (const workspaceId of [randomUUID(), 'nonsense']) {
      const { status, body } = await send(eventOf('payment_intent.succeeded', intentOf(workspaceId)));
      expect([status, body.code]).toEqual([404, 'WORKSPACE_NOT_FOUND']);
    }
    expect(await fixture.sql`select 1 from payments where status = 'pending'`).toHaveLength(0);
  });

  it('believes no body that Stripe did not sign, and none that is old', async () => {
    const owner = await fixture.addWorkspace();
    const event = eventOf('payment_intent.succeeded', intentOf(owner.workspaceId));
    const refusals = [
      await send(event, { secret: 'whsec_somebody_else' }),
      await send(event, { ageS: 301 }),
      await send(event, { sent: JSON.stringify(event).replace('2550', '9999') }),
      await fixture.call('POST', '/billing/stripe/webhook', { as: null, body: event }),
      await fixture.call('POST', '/billing/stripe/webhook', { as: null }),
    ];
    for (const { status, body } of refusals) expect([status, body.code]).toEqual([400, 'WEBHOOK_SIGNATURE_INVALID']);
    expect(await balanceOf(owner)).toBe(0);
    expect((await send(event, { ageS: 299 })).status).toBe(200);
  });

  it('answers 400 to a signed body that is no event', async () => {
    for (const object of [{}, intentOf(undefined, { amount: -1 }), intentOf(undefined, { currency: 7 }), null]) {
      const { status, body } = await send(eventOf('payment_intent.succeeded', object as object));
      expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
    }
    const { status, body } = await send({ object: 'v2.core.event' });
    expect([status, body.code]).toEqual([400, 'MALFORMED_JSON']);
  });

  it('says so when it is not configured', async () => {
    await using without = await createHttpFixture();
    const { status, body } = await without.call('POST', '/billing/stripe/webhook', { as: null, body: {} });
    expect([status, body.code]).toEqual([404, 'PAYMENTS_NOT_CONFIGURED']);
  });
});
