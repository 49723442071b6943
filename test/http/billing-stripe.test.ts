import { randomUUID } from 'node:crypto';
import Stripe from 'stripe';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { charge } from '../../storage/ledger.ts';
import { USD } from '../storage/seed.ts';
import { requireSoundBooks } from '../storage/sound-books.ts';
import { type Answer, createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const SECRET = 'whsec_c3RyaXBlLXRlc3Qtc2VjcmV0';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture({ stripeWebhookSecret: SECRET, rateLimits: { anonymousPerMinute: 100_000 } });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const ORDERS = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
];

interface EventOptions {
  id?: string;
  /** Seconds after the fixture's current time. */
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

/** The charge of a payment, with the total refunded so far. */
function chargeOf(intent: { id: string }, amountRefunded: number) {
  const paid = { amount: 2500, currency: 'usd', payment_intent: intent.id };
  return { id: `ch_of_${intent.id}`, object: 'charge', ...paid, amount_refunded: amountRefunded };
}

function refundOf(intent: { id: string }, more: object) {
  const refund = { object: 'refund', currency: 'usd', status: 'succeeded' };
  return { id: `re_${randomUUID()}`, ...refund, payment_intent: intent.id, ...more };
}

async function paid(usd: number) {
  const owner = await fixture.addWorkspace();
  const intent = intentOf(owner.workspaceId, { amount: usd * 100 });
  expect(await outcomeOf(eventOf('payment_intent.succeeded', intent))).toBe('credited');
  return { owner, intent };
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

describe('POST /billing/stripe/webhook', () => {
  it('tops up the wallet of a payment once, however often Stripe sends the event', async () => {
    const owner = await fixture.addWorkspace();
    const event = eventOf('payment_intent.succeeded', intentOf(owner.workspaceId, { amount_received: 2500 }));
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => outcomeOf(event)));
    expect(outcomes.sort()).toEqual(['credited', ...Array(7).fill('replayed')]);
    const audited = await fixture.sql`select actor_user_id, details from audit_log where action = 'wallet.topped_up'`;
    expect(audited).toMatchObject([{ actorUserId: null, details: { by: 'stripe' } }]);
    // Stripe may repeat a payment under another event id.
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

  it('cuts a long description between two characters', async () => {
    const owner = await fixture.addWorkspace();
    const intent = intentOf(owner.workspaceId, { amount: 2500, description: `${'x'.repeat(499)}🎉🎉` });
    expect(await outcomeOf(eventOf('payment_intent.succeeded', intent))).toBe('credited');
    expect((await paymentsOf(owner))[0].description).toBe(`${'x'.repeat(499)}🎉`);
  });

  it('credits a paid invoice as a subscription, wherever Stripe puts its metadata', async () => {
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

  it('records pending and failed payments, and credits one that succeeds later', async () => {
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

  it('reaches the same balance in whatever order the events of a payment arrive', async () => {
    for (const order of ORDERS) {
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

  it('records payments in other currencies as failed and credits nothing', async () => {
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

  it('ignores events of no wallet, and answers 404 for an unknown wallet', async () => {
    expect(await outcomeOf(eventOf('payment_intent.succeeded', intentOf(undefined)))).toBe('passed_over');
    expect(await outcomeOf(eventOf('customer.created', { id: 'cus_1' }))).toBe('passed_over');
    for (const workspaceId of [randomUUID(), 'nonsense']) {
      const { status, body } = await send(eventOf('payment_intent.succeeded', intentOf(workspaceId)));
      expect([status, body.code]).toEqual([404, 'WORKSPACE_NOT_FOUND']);
    }
    expect(await fixture.sql`select 1 from payments where status = 'pending'`).toHaveLength(0);
  });

  it('rejects forged, altered and stale signatures', async () => {
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

  it('answers 400 to a signed body without a valid event', async () => {
    for (const object of [{}, intentOf(undefined, { amount: -1 }), intentOf(undefined, { currency: 7 }), null]) {
      const { status, body } = await send(eventOf('payment_intent.succeeded', object as object));
      expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
    }
    const { status, body } = await send({ object: 'v2.core.event' });
    expect([status, body.code]).toEqual([400, 'MALFORMED_JSON']);
  });

  it('debits each refund of a payment once, across repeated and different events', async () => {
    const { owner, intent } = await paid(25);
    const first = refundOf(intent, { amount: 1000 });
    expect(await outcomeOf(eventOf('charge.refunded', chargeOf(intent, 1000)))).toBe('debited');
    expect(await outcomeOf(eventOf('charge.refunded', chargeOf(intent, 1000)))).toBe('recorded');
    expect(await outcomeOf(eventOf('refund.created', first))).toBe('recorded');
    expect(await outcomeOf(eventOf('refund.updated', first))).toBe('recorded');
    expect(await balanceOf(owner)).toBe(15);
    const second = eventOf('refund.created', refundOf(intent, { amount: 500 }));
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => outcomeOf(second)));
    expect(outcomes.sort()).toEqual(['debited', 'replayed', 'replayed', 'replayed']);
    expect(await outcomeOf(eventOf('charge.refunded', chargeOf(intent, 1500)))).toBe('recorded');
    expect(await balanceOf(owner)).toBe(10);
    const refund = { payment_type: 'one_time', status: 'succeeded', description: 'Refunded: Card payment' };
    expect(await paymentsOf(owner)).toMatchObject([
      { ...refund, amount: -5, balance_before: 15, balance_after: 10 },
      { ...refund, amount: -10, balance_before: 25, balance_after: 15 },
      { amount: 25, status: 'succeeded', balance_after: 25, description: 'Card payment' },
    ]);
    const audited = await fixture.sql`
      select details from audit_log where action = 'wallet.debited' and workspace_id = ${owner.workspaceId} order by id`;
    expect(audited).toMatchObject([{ details: { by: 'stripe', amount_usd: 10 } }, { details: { amount_usd: 5 } }]);
    await requireSoundBooks(fixture.sql, owner.workspaceId);
  });

  it('credits a failed refund again, in whatever order its events arrive', async () => {
    for (const order of ORDERS) {
      const { owner, intent } = await paid(25);
      const refund = refundOf(intent, { amount: 1000 });
      const events = [
        eventOf('refund.created', refund, { afterS: 1 }),
        eventOf('charge.refunded', chargeOf(intent, 1000), { afterS: 1 }),
        eventOf('refund.failed', { ...refund, status: 'failed' }, { afterS: 2 }),
      ];
      for (const index of order) await outcomeOf(events[index]!);
      expect(await balanceOf(owner)).toBe(25);
      await requireSoundBooks(fixture.sql, owner.workspaceId);
    }
  });

  it('debits a withdrawn dispute and credits it again when reinstated, in whatever order', async () => {
    const { owner, intent } = await paid(25);
    const dispute = { id: `dp_${randomUUID()}`, object: 'dispute', amount: 2500, currency: 'usd' };
    const ofIntent = { ...dispute, charge: 'ch_1', payment_intent: intent.id };
    const withdrawn = eventOf(
      'charge.dispute.funds_withdrawn',
      { ...ofIntent, status: 'needs_response' },
      { afterS: 1 },
    );
    const reinstated = eventOf('charge.dispute.funds_reinstated', { ...ofIntent, status: 'won' }, { afterS: 2 });
    expect(await outcomeOf(eventOf('charge.dispute.created', ofIntent))).toBe('passed_over');
    expect(await outcomeOf(withdrawn)).toBe('debited');
    expect(await balanceOf(owner)).toBe(0);
    expect(await outcomeOf(reinstated)).toBe('credited');
    expect(await outcomeOf({ ...withdrawn, id: 'evt_late' })).toBe('recorded');
    expect(await balanceOf(owner)).toBe(25);
    expect(await paymentsOf(owner)).toMatchObject([
      { amount: 25, description: 'Dispute won: Card payment', balance_after: 25 },
      { amount: -25, description: 'Disputed: Card payment', balance_after: 0 },
      { amount: 25 },
    ]);
    const other = await paid(25);
    const turned = { ...ofIntent, id: `dp_${randomUUID()}`, payment_intent: other.intent.id };
    await outcomeOf(eventOf('charge.dispute.funds_reinstated', turned, { afterS: 2 }));
    await outcomeOf(eventOf('charge.dispute.funds_withdrawn', turned, { afterS: 1 }));
    expect(await balanceOf(other.owner)).toBe(25);
  });

  it('leaves a spent wallet below zero after a refund, and answers 402 to further work', async () => {
    const { owner, intent } = await paid(25);
    const spent = { service: 'llm', operation: 'chat', resourceId: null, quantity: 1, unit: 'token' } as const;
    await charge(fixture.sql, {
      ...{ ...spent, workspaceId: owner.workspaceId, amountNano: 24n * USD, operationKey: randomUUID() },
      ...{ unitPriceNano: USD, apiKeyId: null, userId: null },
    });
    expect(await outcomeOf(eventOf('charge.refunded', chargeOf(intent, 2500)))).toBe('debited');
    const wallet = await fixture.call('GET', '/billing/wallet', { as: owner });
    expect(wallet.body.data).toEqual({ balance: -24, held: 0, available: -24, currency: 'USD' });
    const messages = [{ role: 'user', content: 'Hello' }];
    const { status, body } = await fixture.call('POST', '/v1/chat/completions', {
      as: owner,
      body: { model: 'tiny-1.0', messages },
    });
    expect([status, body.code]).toEqual([402, 'INSUFFICIENT_CREDITS']);
    await outcomeOf(eventOf('payment_intent.succeeded', intentOf(owner.workspaceId, { amount: 2500 })));
    expect(await balanceOf(owner)).toBe(1);
    await requireSoundBooks(fixture.sql, owner.workspaceId);
  });

  it('debits at most what a payment credited, and nothing for one in another currency', async () => {
    const { owner, intent } = await paid(25);
    await outcomeOf(eventOf('charge.refunded', chargeOf(intent, 2500)));
    const dispute = { id: `dp_${randomUUID()}`, amount: 2500, currency: 'usd', payment_intent: intent.id };
    expect(await outcomeOf(eventOf('charge.dispute.funds_withdrawn', dispute))).toBe('recorded');
    const euros = intentOf(owner.workspaceId, { currency: 'eur' });
    await outcomeOf(eventOf('payment_intent.succeeded', euros));
    const charged = { ...chargeOf(euros, 2550), currency: 'eur' };
    expect(await outcomeOf(eventOf('charge.refunded', charged))).toBe('recorded');
    expect(await balanceOf(owner)).toBe(0);
  });

  it('applies a refund that arrives before its payment', async () => {
    const owner = await fixture.addWorkspace();
    const intent = intentOf(owner.workspaceId, { amount: 2500 });
    expect(await outcomeOf(eventOf('charge.refunded', chargeOf(intent, 700)))).toBe('recorded');
    expect(await outcomeOf(eventOf('payment_intent.succeeded', intent))).toBe('debited');
    expect(await balanceOf(owner)).toBe(18);
    const [refunded] = await paymentsOf(owner);
    expect(refunded).toMatchObject({ amount: -7, description: 'Refunded or disputed: Card payment' });
  });

  it('finds the invoice of a refunded charge in the format of every API version', async () => {
    const invoiceOf = (workspaceId: string, more: object = {}) => ({
      ...{ id: `in_${randomUUID()}`, amount_paid: 900, amount_due: 900, currency: 'usd' },
      ...{ metadata: { workspace_id: workspaceId }, ...more },
    });
    const intent = () => ({ id: `pi_${randomUUID()}` });

    const named = { owner: await fixture.addWorkspace(), intent: intent() };
    const earlier = invoiceOf(named.owner.workspaceId, { payment_intent: named.intent.id });
    await outcomeOf(eventOf('invoice.paid', earlier));
    expect(await outcomeOf(eventOf('charge.refunded', chargeOf(named.intent, 400)))).toBe('debited');

    const charged = { owner: await fixture.addWorkspace(), intent: intent() };
    const invoice = invoiceOf(charged.owner.workspaceId);
    await outcomeOf(eventOf('invoice.paid', invoice));
    const ofInvoice = { ...chargeOf(charged.intent, 400), invoice: invoice.id };
    expect(await outcomeOf(eventOf('charge.refunded', ofInvoice))).toBe('debited');

    const later = { owner: await fixture.addWorkspace(), intent: intent() };
    const paidLater = invoiceOf(later.owner.workspaceId);
    await outcomeOf(eventOf('invoice.paid', paidLater));
    expect(await outcomeOf(eventOf('charge.refunded', chargeOf(later.intent, 400)))).toBe('recorded');
    const payment = { type: 'payment_intent', payment_intent: later.intent.id };
    const invoicePayment = { id: `inpay_${randomUUID()}`, invoice: paidLater.id, payment };
    expect(await outcomeOf(eventOf('invoice_payment.paid', invoicePayment))).toBe('debited');

    for (const { owner } of [named, charged, later]) {
      expect(await balanceOf(owner)).toBe(5);
      const [refunded] = await paymentsOf(owner);
      expect(refunded).toMatchObject({ amount: -4, payment_type: 'subscription' });
    }
  });

  it('answers 404 when Stripe is not configured', async () => {
    await using without = await createHttpFixture();
    const { status, body } = await without.call('POST', '/billing/stripe/webhook', { as: null, body: {} });
    expect([status, body.code]).toEqual([404, 'PAYMENTS_NOT_CONFIGURED']);
  });
});
