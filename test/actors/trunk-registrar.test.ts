import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { registerTrunks, type TrunkRegistrar } from '../../actors/trunk-registrar.ts';
import { TandemError } from '../../machines/errors.ts';
import type { RegisterOutcome, TrunkSign } from '../../sip/sip-gateway.ts';
import { getTrunk, updateTrunk } from '../../storage/queries/trunks.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
import { later, NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { anyTrunkTarget, createTestClock, createTestLogger, FakeSip } from './fakes.ts';
import { type Caller, seedCaller } from './seeds.ts';

const secrets = createSecretBox(Buffer.alloc(32, 7));

let database: TestDatabase;
let caller: Caller;
const open: TrunkRegistrar[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
  caller = await seedCaller(database.sql, { sipUri: 'sip:one.example', username: 'tandem', register: true });
});
afterEach(async () => {
  for (const registrar of open.splice(0)) await registrar.close();
  await database.drop();
});

async function trunk() {
  return (await getTrunk(database.sql, { id: caller.trunkId, workspaceId: caller.workspaceId }))!;
}

function change(patch: Parameters<typeof updateTrunk>[1]['patch']) {
  return updateTrunk(database.sql, { id: caller.trunkId, workspaceId: caller.workspaceId, patch, now: NOW });
}

function startRegistrar({ sip = new FakeSip(), boot = 'boot-1', trunkTargets = anyTrunkTarget } = {}) {
  const clock = createTestClock();
  const logger = createTestLogger();
  const signs: TrunkSign[] = [];
  let gatewayBack: () => void = () => expect.unreachable();
  const trunks = {
    registering: () => (sign: TrunkSign) => {
      signs.push(sign);
      gatewayBack();
    },
    onGatewayBack: (_: string, listener: () => void) => {
      gatewayBack = listener;
    },
  };
  const { sql } = database;
  const registrar = registerTrunks({ sip, sql, secrets, trunkTargets, trunks, boot, clock, logger });
  open.push(registrar);
  return { registrar, sip, clock, logger, signs, gatewayBack: () => gatewayBack() };
}

/** Waits until the next attempt and the next trunk poll are scheduled. */
async function untilWaiting({ clock }: ReturnType<typeof startRegistrar>, delayMs: number) {
  await eventually(() => {
    expect(clock.waiting()).toHaveLength(2);
    expect(clock.waiting()).toContain(delayMs);
  });
}

describe('trunk registrar', () => {
  it('registers a trunk, stores it, and refreshes it before it expires', async () => {
    const started = startRegistrar();
    const { sip, clock, signs } = started;
    sip.onRegister = () => ({ type: 'registered', expiresS: 100 });
    await untilWaiting(started, 80_000);
    expect(sip.registers).toMatchObject([{ expiresS: 600, trunk: { sipUri: 'sip:one.example', username: 'tandem' } }]);
    expect(await trunk()).toMatchObject({
      registrationState: 'registered',
      registeredAt: NOW,
      registrationExpiresAt: later(100_000),
      registrationError: null,
    });
    clock.advance(80_000);
    await eventually(async () => {
      expect(sip.registers).toHaveLength(2);
      expect(await trunk()).toMatchObject({ registeredAt: NOW, registrationExpiresAt: later(180_000) });
    });
    expect(signs).toEqual([{ type: 'answered' }, { type: 'answered' }]);
  });

  it('registers again soon after its connection was closed, and later each time', async () => {
    const started = startRegistrar();
    const { sip, clock } = started;
    const waitAfterLoss = async (waitMs: number) => {
      sip.loseRegistration();
      // The other five seconds are those of the next trunk poll.
      await eventually(() => expect(clock.waiting().toSorted()).toEqual([waitMs, 5_000].toSorted()));
    };
    await untilWaiting(started, 480_000);
    for (const waitMs of [5_000, 10_000, 20_000]) {
      await waitAfterLoss(waitMs);
      clock.advance(waitMs);
      await untilWaiting(started, 480_000);
    }
    expect(sip.registers.map(({ expiresS }) => expiresS)).toEqual([600, 600, 600, 600]);
    clock.advance(480_000);
    await eventually(() => expect(sip.registers).toHaveLength(5));
    await untilWaiting(started, 480_000);
    await waitAfterLoss(5_000);
  });

  it('registers again in five seconds each time that a connection lasted a minute', async () => {
    const started = startRegistrar();
    const { sip, clock } = started;
    await untilWaiting(started, 480_000);
    for (const attempts of [2, 3, 4]) {
      clock.advance(60_000);
      sip.loseRegistration();
      await eventually(() => expect(clock.waiting().toSorted()).toEqual([5_000, 5_000]));
      clock.advance(5_000);
      await eventually(() => expect(sip.registers).toHaveLength(attempts));
      await untilWaiting(started, 480_000);
    }
  });

  it('does not hurry after a refused refresh, though the connection is closed and opened again', async () => {
    const started = startRegistrar();
    const { sip, clock } = started;
    await untilWaiting(started, 480_000);
    sip.onRegister = () => ({ type: 'refused', sipStatus: 403, reason: 'Forbidden', retryAfterS: 900 });
    clock.advance(480_000);
    await untilWaiting(started, 900_000);
    sip.loseRegistration();
    started.gatewayBack();
    clock.advance(899_999);
    await eventually(() => expect(clock.waiting().toSorted()).toEqual([1, 5_000]));
    expect(sip.registers).toHaveLength(2);
    clock.advance(1);
    await eventually(() => expect(sip.registers).toHaveLength(3));
  });

  it('registers again soon after a gateway that was down responds', async () => {
    const started = startRegistrar();
    const { sip, clock } = started;
    await untilWaiting(started, 480_000);
    started.gatewayBack();
    await eventually(() => expect(clock.waiting()).toEqual([5_000, 5_000]));
    sip.onRegister = () => ({ type: 'unanswered', reason: 'no_response' });
    for (const waitMs of [5_000, 5_000, 10_000]) {
      clock.advance(waitMs);
      await eventually(() => expect(clock.waiting()).toHaveLength(2));
    }
    await untilWaiting(started, 20_000);
    expect(sip.registers).toHaveLength(4);
    started.gatewayBack();
    await eventually(() => expect(clock.waiting()).toEqual([5_000, 5_000]));
  });

  it('ignores trunks without registration', async () => {
    await change({ register: false });
    const { registrar, sip } = startRegistrar();
    await registrar.sync();
    expect(sip.registers).toEqual([]);
  });

  it('waits longer after each failure, and stores the reason', async () => {
    const started = startRegistrar();
    const { sip, clock, logger, signs } = started;
    sip.onRegister = () => ({ type: 'unanswered', reason: 'no_response' });
    for (const [attempts, waitMs] of [
      [1, 5_000],
      [2, 10_000],
      [3, 20_000],
    ] as const) {
      await eventually(() => expect(sip.registers).toHaveLength(attempts));
      await untilWaiting(started, waitMs);
      clock.advance(waitMs);
    }
    await eventually(async () =>
      expect(await trunk()).toMatchObject({ registrationState: 'failed', registrationError: 'no_response' }),
    );
    expect(logger.messages('warn')).toEqual(['trunk not registered']);
    expect(signs[0]).toEqual({ type: 'unanswered', reason: 'no_response' });
  });

  it('registers at the next gateway while the first is silent or overloaded, and unregisters there', async () => {
    const sipUris = ['sip:one.example', 'sip:two.example'];
    const gateways = sipUris.map((sipUri, priority) => ({ sipUri, transport: null, priority, weight: 1 }));
    await change({ gateways });
    const started = startRegistrar();
    const { sip, clock, registrar } = started;
    let first: RegisterOutcome = { type: 'unanswered', reason: 'no_response' };
    sip.onRegister = (_, { sipUri }) => (sipUri === 'sip:one.example' ? first : { type: 'registered', expiresS: 100 });
    const asked = () => sip.registers.map(({ trunk: { sipUri }, expiresS }) => [sipUri, expiresS]);
    await untilWaiting(started, 80_000);
    expect(asked()).toEqual(sipUris.map((sipUri) => [sipUri, 600]));
    expect(await trunk()).toMatchObject({ registrationState: 'registered', registrationError: null });
    first = { type: 'refused', sipStatus: 503, reason: 'Busy', retryAfterS: null };
    clock.advance(80_000);
    await eventually(() => expect(sip.registers).toHaveLength(4));
    await untilWaiting(started, 80_000);
    await registrar.close();
    expect(asked().at(-1)).toEqual(['sip:two.example', 0]);
  });

  it('unregisters where it is registered, even if that gateway no longer responds', async () => {
    const gateways = ['sip:one.example', 'sip:two.example'].map((sipUri, priority) => ({
      ...{ sipUri, transport: null, priority, weight: 1 },
    }));
    await change({ gateways });
    const started = startRegistrar();
    const { sip, clock, registrar } = started;
    sip.onRegister = () => ({ type: 'registered', expiresS: 100 });
    await untilWaiting(started, 80_000);
    sip.onRegister = () => ({ type: 'unanswered', reason: 'no_response' });
    clock.advance(80_000);
    await eventually(() => expect(sip.registers).toHaveLength(3));
    await untilWaiting(started, 5_000);
    await registrar.close();
    expect(sip.registers.at(-1)).toMatchObject({ expiresS: 0, trunk: { sipUri: 'sip:one.example' } });
  });

  it('does not try the next gateway when the first rejects the password', async () => {
    const gateways = ['sip:one.example', 'sip:two.example'].map((sipUri) => ({
      ...{ sipUri, transport: null, priority: 0, weight: 1 },
    }));
    await change({ gateways });
    const started = startRegistrar();
    started.sip.onRegister = () => ({ type: 'refused', sipStatus: 403, reason: 'Forbidden', retryAfterS: null });
    await untilWaiting(started, 60_000);
    expect(started.sip.registers).toHaveLength(1);
  });

  it('waits a minute after a rejected password, and for the duration of Retry-After', async () => {
    const refused = startRegistrar();
    refused.sip.onRegister = () => ({ type: 'refused', sipStatus: 403, reason: 'Forbidden', retryAfterS: null });
    await untilWaiting(refused, 60_000);
    expect(await trunk()).toMatchObject({ registrationState: 'failed', registrationError: '403 Forbidden' });
    await refused.registrar.close();
    const busy = startRegistrar();
    busy.sip.onRegister = () => ({ type: 'refused', sipStatus: 503, reason: 'Busy', retryAfterS: 900 });
    await untilWaiting(busy, 900_000);
  });

  it('stays registered until the registration expires, although a refresh fails', async () => {
    const started = startRegistrar();
    const { sip, clock } = started;
    sip.onRegister = () => ({ type: 'registered', expiresS: 100 });
    await untilWaiting(started, 80_000);
    sip.onRegister = () => ({ type: 'unanswered', reason: 'no_response' });
    clock.advance(80_000);
    await eventually(async () =>
      expect(await trunk()).toMatchObject({ registrationState: 'registered', registrationError: 'no_response' }),
    );
    for (const waitMs of [5_000, 10_000, 20_000]) {
      await untilWaiting(started, waitMs);
      clock.advance(waitMs);
    }
    await eventually(async () =>
      expect(await trunk()).toMatchObject({ registrationState: 'failed', registeredAt: null }),
    );
  });

  it.each([
    { when: 'disabled', patch: { status: 'disabled' as const } },
    { when: 'configured not to register', patch: { register: false } },
  ])('unregisters when the trunk is $when', async ({ patch }) => {
    const started = startRegistrar();
    await untilWaiting(started, 480_000);
    await change(patch);
    await started.registrar.sync();
    expect(started.sip.registers.map(({ expiresS }) => expiresS)).toEqual([600, 0]);
    expect(await trunk()).toMatchObject({ registrationState: null });
  });

  it('moves the registration to a new account', async () => {
    const started = startRegistrar();
    await untilWaiting(started, 480_000);
    await change({ username: 'second' });
    await started.registrar.sync();
    await eventually(() =>
      expect(started.sip.registers.map(({ trunk: { username }, expiresS }) => [username, expiresS])).toEqual([
        ['tandem', 600],
        ['tandem', 0],
        ['second', 600],
      ]),
    );
  });

  it('unregisters at shutdown', async () => {
    const started = startRegistrar();
    await untilWaiting(started, 480_000);
    await started.registrar.close();
    expect(started.sip.registers.map(({ expiresS }) => expiresS)).toEqual([600, 0]);
    expect(await trunk()).toMatchObject({ registrationState: null });
  });

  it('leaves a trunk to its registrar on another server until that one dies', async () => {
    const first = startRegistrar();
    await untilWaiting(first, 480_000);
    const second = startRegistrar({ boot: 'boot-2' });
    await second.registrar.sync();
    expect(second.sip.registers).toEqual([]);
    await database.sql`update trunk_registrations set leased_until = now() - interval '1 second'`;
    await second.registrar.sync();
    await eventually(() => expect(second.sip.registers).toHaveLength(1));
    await first.registrar.sync();
    expect(first.sip.registers.map(({ expiresS }) => expiresS)).toEqual([600, 0]);
    expect(await trunk()).toMatchObject({ registrationState: 'registered' });
  });

  it('sends nothing while the SIP server is away', async () => {
    const started = startRegistrar({ sip: new FakeSip('disconnected') });
    await untilWaiting(started, 1_000);
    expect(started.sip.registers).toEqual([]);
    started.sip.become('connected');
    started.clock.advance(1_000);
    await eventually(() => expect(started.sip.registers).toHaveLength(1));
  });

  it('sends nothing to a forbidden host', async () => {
    const locate = async () => {
      throw new TandemError('TRUNK_HOST_NOT_ALLOWED', 'sip_uri leads to a private network.');
    };
    const started = startRegistrar({ trunkTargets: { locate } });
    await untilWaiting(started, 5_000);
    expect(started.sip.registers).toEqual([]);
    expect(await trunk()).toMatchObject({ registrationState: 'failed', registrationError: 'host_not_allowed' });
  });
});
