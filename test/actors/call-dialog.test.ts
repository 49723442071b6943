import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dialogPort } from '../../actors/call-dialog.ts';
import { createCallRegistry } from '../../actors/call-registry.ts';
import { createPhoneDesk } from '../../actors/phones/phone-desk.actor.ts';
import { trunkEndpoint } from '../../actors/trunk-dialing.ts';
import type { TrunkTargets } from '../../actors/trunk-targets.ts';
import { TandemError } from '../../machines/errors.ts';
import type { HangupCause, LegName } from '../../machines/events.ts';
import type { DialogCommand } from '../../machines/leg.machine.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { DialogHandle, NextHop, TrunkSign } from '../../sip/sip-gateway.ts';
import type { Sql } from '../../storage/database.ts';
import { type CallRow, legHandlesOf } from '../../storage/queries/calls.ts';
import type { StoredGateway } from '../../storage/queries/trunk-gateways.ts';
import { type DialedTrunk, getTrunkById } from '../../storage/queries/trunks.ts';
import { trunkPasswordContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
import { fakeSql } from '../storage/fake-sql.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import {
  anyTrunkTarget,
  callRow,
  createTestClock,
  createTestLogger,
  everyGateway,
  FakeSip,
  liveCall,
  quiet,
  remoteMedia,
  runPort,
} from './fakes.ts';
import { FakeWebRtc } from './phones/fake-webrtc.ts';
import { seedCaller } from './seeds.ts';

const secrets = createSecretBox(Buffer.alloc(32, 7));
const LOCAL = { host: '127.0.0.1', rtpPort: 10_000 };

const hangup = (cause: HangupCause): DialogCommand => ({ type: 'hangup', cause });

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('dialog of a leg', () => {
  it("dials the agent over the call's trunk, with caller ID and media address", async () => {
    const { sip, call } = await startDialog('agent');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    expect(sip.legs[0]?.request).toMatchObject({
      trunk: { sipUri: 'sip:127.0.0.1:5070', transport: 'udp', codecs: ['PCMU', 'PCMA'] },
      callerId: call.did,
      calledNumber: call.agentNumber,
      localMedia: LOCAL,
      callId: call.callId,
    });
  });

  it("dials the customer's number", async () => {
    const { sip, call } = await startDialog('customer');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    expect(sip.legs[0]?.request.calledNumber).toBe(call.customerNumber);
  });

  it("decrypts the trunk's password for the gateway", async () => {
    const { sip } = await startDialog('agent', { password: 's3cret of the trunk' });
    await eventually(() => expect(sip.legs).toHaveLength(1));
    expect(sip.legs[0]?.request.trunk).toMatchObject({ username: 'tandem', password: 's3cret of the trunk' });
  });

  it('dials the agent over the trunk as admitted, and the customer over the present one', async () => {
    for (const [leg, sipUri] of [
      ['agent', 'sip:admitted.example'],
      ['customer', 'sip:one.example'],
    ] as const) {
      const { sip } = await startDialog(leg, { gateways: [], admitted: { sipUri: 'sip:admitted.example' } });
      await eventually(() => expect(sip.legs).toHaveLength(1));
      expect(sip.legs[0]?.request.trunk).toMatchObject({ sipUri });
    }
  });

  it('loses the leg when the password belongs to another trunk, and does not log it', async () => {
    const { sip, port, logger } = await startDialog('agent', { password: 's3cret', sealedFor: 'another trunk' });
    await eventually(() => expect(port.received.map(({ type }) => type)).toEqual(['leg.lost']));
    expect(sip.legs).toEqual([]);
    expect(logger.messages('error')).toEqual(['leg could not be dialed']);
    expect(JSON.stringify(logger.lines)).not.toContain('s3cret');
  });

  it('forwards events of the gateway', async () => {
    const { sip, port } = await startDialog('agent');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    sip.legs[0]?.emit({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
    sip.legs[0]?.emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia() });
    expect(port.received.map(({ type }) => type)).toEqual(['leg.ringing', 'leg.answered']);
  });

  it("keeps the dialog handle for the next process, even if storing the INVITE's handle takes longer", async () => {
    const { sql } = database;
    const isHeldUp = Promise.withResolvers<void>();
    let updates = 0;
    const slow = new Proxy(sql, {
      apply(target, self, args) {
        const query = Reflect.apply(target, self, args);
        if (!String(args[0]).includes('leg_handles')) return query;
        updates += 1;
        return updates === 1 ? isHeldUp.promise.then(() => query) : query;
      },
    });
    const { sip, call } = await startDialog('agent', { sql: slow });
    await eventually(() => expect(sip.legs).toHaveLength(1));
    const dialog = { kind: 'dialog', dialogId: 'd', callId: 'c', local: '', remote: '', target: null, routes: [] };
    sip.legs[0]?.request.onHandle?.({ kind: 'invite', transactionId: 't', dialogId: 'd' });
    sip.legs[0]?.request.onHandle?.({ ...dialog, sequence: 1 } as DialogHandle);
    const isLast = () =>
      eventually(async () => expect(await legHandlesOf(sql, call.callId)).toMatchObject([{ kind: 'dialog' }]));
    // Stores a second update first if it does not wait.
    if (updates > 1) await isLast();
    isHeldUp.resolve();
    await eventually(() => expect(updates).toBe(2));
    await isLast();
    expect(await legHandlesOf(sql, call.callId)).toHaveLength(1);
  });

  it("reports the trunk's responses to the INVITE", async () => {
    const { sip, signs } = await startDialog('agent');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    sip.legs[0]?.request.onSign?.({ type: 'answered' });
    expect(signs).toEqual([{ type: 'answered' }]);
  });

  describe('over several gateways', () => {
    const refused = (sipStatus: number) =>
      ({ type: 'leg.refused', sipStatus, hangupCause: 'NORMAL_TEMPORARY_FAILURE', detail: 'x' }) as const;
    const GATEWAYS = ['one', 'two', 'three'].map((name, priority) => ({
      ...{ sipUri: `sip:${name}.example`, transport: null, priority, weight: 1 },
    }));

    async function startOverGateways(options: Parameters<typeof startDialog>[1] = {}) {
      const started = await startDialog('agent', { gateways: GATEWAYS, ...options });
      const dialed = async (count: number) => {
        await eventually(() => expect(started.sip.legs).toHaveLength(count));
        return started.sip.legs.at(-1)!;
      };
      return { ...started, dialed };
    }

    it.each([408, 503])('tries the next gateway after a %i before ringing', async (status) => {
      const { dialed, port, sip } = await startOverGateways();
      (await dialed(1)).emit(refused(status));
      (await dialed(2)).emit(refused(status));
      (await dialed(3)).emit({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
      expect(sip.legs.map(({ request }) => request.trunk.sipUri)).toEqual(GATEWAYS.map(({ sipUri }) => sipUri));
      expect(port.received.map(({ type }) => type)).toEqual(['leg.ringing']);
    });

    it('reports the refusal of the last gateway', async () => {
      const { dialed, port } = await startOverGateways();
      for (const count of [1, 2, 3]) (await dialed(count)).emit(refused(503));
      expect(port.received).toEqual([refused(503)]);
    });

    it.each([404, 486, 500, 603])("treats a %i as the callee's answer", async (status) => {
      const { dialed, port, sip } = await startOverGateways();
      (await dialed(1)).emit(refused(status));
      expect(port.received).toEqual([refused(status)]);
      expect(sip.legs).toHaveLength(1);
    });

    it('stops trying after ringing', async () => {
      const { dialed, port, sip } = await startOverGateways();
      const leg = await dialed(1);
      leg.emit({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
      leg.emit(refused(503));
      expect(port.received).toHaveLength(2);
      expect(sip.legs).toHaveLength(1);
    });

    it('stops after a hang-up, and cancels the current gateway', async () => {
      const { dialed, port, sip } = await startOverGateways();
      (await dialed(1)).emit(refused(503));
      const second = await dialed(2);
      port.send(hangup('ORIGINATOR_CANCEL'));
      expect(second.hangups).toEqual(['ORIGINATOR_CANCEL']);
      second.emit(refused(503));
      expect(port.received).toEqual([refused(503)]);
      expect(sip.legs).toHaveLength(2);
    });

    it('stops when the own SIP server disconnects', async () => {
      const { dialed, port, sip } = await startOverGateways();
      const leg = await dialed(1);
      sip.become('disconnected');
      leg.emit(refused(503));
      expect(port.received).toEqual([refused(503)]);
    });

    it('abandons a silent gateway that does not answer OPTIONS', async () => {
      const { dialed, clock, port } = await startOverGateways({ gone: ['sip:one.example'] });
      const first = await dialed(1);
      clock.advance(3_000);
      const second = await dialed(2);
      expect(second.request.trunk.sipUri).toBe('sip:two.example');
      expect(first.request.signal.aborted).toBe(true);
      first.emit(refused(487));
      expect(port.received).toEqual([]);
      second.emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia() });
      clock.advance(3_000);
      expect(port.received.map(({ type }) => type)).toEqual(['leg.answered']);
      expect(second.request.signal.aborted).toBe(false);
    });

    it('waits for a silent gateway that answers OPTIONS or has responded before', async () => {
      const { dialed, clock, sip } = await startOverGateways({ gone: ['sip:two.example'] });
      const first = await dialed(1);
      clock.advance(3_000);
      await quiet();
      expect(sip.legs).toHaveLength(1);
      first.emit(refused(503));
      (await dialed(2)).request.onSign?.({ type: 'answered' });
      clock.advance(3_000);
      await quiet();
      expect(sip.legs).toHaveLength(2);
    });

    it('skips a gateway that the trunk must not use', async () => {
      const locate: TrunkTargets['locate'] = async (target) => {
        if (target.sipUri === 'sip:one.example') throw new TandemError('TRUNK_HOST_NOT_ALLOWED', 'a private network');
        return await anyTrunkTarget.locate(target);
      };
      const { dialed } = await startOverGateways({ trunkTargets: { locate } });
      expect((await dialed(1)).request.trunk.sipUri).toBe('sip:two.example');
    });

    it('tries the addresses of each gateway in order before the next gateway', async () => {
      const located: Record<string, NextHop[]> = {
        'sip:one.example': [hopAt('192.0.2.1'), { ...hopAt('192.0.2.2'), transport: 'tcp' }],
        'sip:two.example': [hopAt('192.0.2.3')],
        'sip:three.example': [hopAt('192.0.2.4')],
      };
      const trunkTargets = { locate: async ({ sipUri }: { sipUri: string }) => located[sipUri]! };
      const { dialed, port, signs } = await startOverGateways({ trunkTargets });
      const silence = { type: 'unanswered', reason: 'no_response' } as const;
      for (const [count, address, transport] of [
        [1, '192.0.2.1', 'udp'],
        [2, '192.0.2.2', 'tcp'],
        [3, '192.0.2.3', 'udp'],
        [4, '192.0.2.4', 'udp'],
      ] as const) {
        const leg = await dialed(count);
        expect(leg.request.trunk).toMatchObject({ nextHop: { address }, transport });
        leg.request.onSign?.(silence);
        leg.emit(refused(408));
      }
      expect(port.received).toEqual([refused(408)]);
      // One per gateway: a failed address does not count while others remain.
      expect(signs).toEqual([silence, silence, silence]);
    });

    it('tries the next address when one is silent and does not answer OPTIONS', async () => {
      const trunkTargets = { locate: async () => [hopAt('192.0.2.1'), hopAt('192.0.2.2')] };
      const { dialed, clock } = await startOverGateways({ trunkTargets, gone: ['sip:one.example'] });
      const first = await dialed(1);
      clock.advance(3_000);
      expect((await dialed(2)).request.trunk.nextHop).toMatchObject({ address: '192.0.2.2' });
      expect(first.request.signal.aborted).toBe(true);
    });
  });

  it('hangs up with the given cause', async () => {
    const { sip, port } = await startDialog('agent');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    port.send(hangup('NO_ANSWER'));
    expect(sip.legs[0]?.hangups).toEqual(['NO_ANSWER']);
  });

  it('sends no INVITE after a hang-up before the trunk was read, and reports 487', async () => {
    const { sip, port } = await startDialog('agent');
    port.send(hangup('ORIGINATOR_CANCEL'));
    await eventually(() => expect(port.received).toHaveLength(1));
    expect(port.received[0]).toMatchObject({
      type: 'leg.refused',
      sipStatus: 487,
      hangupCause: 'ORIGINATOR_CANCEL',
    });
    expect(sip.legs).toEqual([]);
  });

  it('sends no INVITE when the call ended before the trunk was read', async () => {
    const { sip, port, live } = await startDialog('agent');
    live.abort.abort();
    await eventually(() => expect(port.received).toMatchObject([{ type: 'leg.refused', sipStatus: 487 }]));
    expect(sip.legs).toEqual([]);
  });

  it('aborts its INVITE when the leg stops', async () => {
    const { sip, port } = await startDialog('agent');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    expect(sip.legs[0]?.request.signal.aborted).toBe(false);
    port.stop();
    expect(sip.legs[0]?.request.signal.aborted).toBe(true);
  });

  it('aborts its INVITE when the call leaves the registry', async () => {
    const { sip, live, registry } = await startDialog('agent');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    registry.remove(live.row.callId);
    expect(sip.legs[0]?.request.signal.aborted).toBe(true);
  });

  it('dials the checked address under the host name of the trunk', async () => {
    const trunkTargets = { locate: async () => [hopAt('192.0.2.7')] };
    const { sip } = await startDialog('agent', { trunkTargets });
    await eventually(() => expect(sip.legs).toHaveLength(1));
    expect(sip.legs[0]?.request.trunk).toMatchObject({
      sipUri: 'sip:127.0.0.1:5070',
      nextHop: { address: '192.0.2.7' },
    });
  });

  it('reports a host without addresses', async () => {
    const { port, sip } = await startDialog('agent', { trunkTargets: { locate: async () => [] } });
    await eventually(() => expect(port.received).toHaveLength(1));
    expect(port.received).toMatchObject([{ type: 'leg.refused', sipStatus: 503, hangupCause: 'NO_ROUTE_DESTINATION' }]);
    expect(sip.legs).toEqual([]);
  });

  it('sends no INVITE to a forbidden address, and reports why', async () => {
    const refused = new TandemError('TRUNK_HOST_NOT_ALLOWED', 'sip_uri leads to a private network.');
    const { sip, port, logger } = await startDialog('agent', {
      trunkTargets: { locate: () => Promise.reject(refused) },
    });
    await eventually(() => expect(port.received).toHaveLength(1));
    expect(port.received).toMatchObject([
      { type: 'leg.refused', hangupCause: 'NO_ROUTE_DESTINATION', detail: 'sip_uri leads to a private network.' },
    ]);
    expect(sip.legs).toEqual([]);
    expect(logger.messages('error')).toEqual([]);
  });

  it('loses the leg when the trunk cannot be read', async () => {
    const away = fakeSql(() => Promise.reject(new Error('storage is away')));
    const { port, sip } = await startDialog('agent', { sql: away });
    await eventually(() => expect(port.received).toMatchObject([{ type: 'leg.lost' }]));
    expect(sip.legs).toEqual([]);
  });

  it('loses the leg when the trunk is deleted', async () => {
    const { port } = await startDialog('agent', { row: callRow() });
    await eventually(() => expect(port.received).toMatchObject([{ type: 'leg.lost' }]));
  });

  it('throws for a call outside the registry', async () => {
    const { port } = await startDialog('agent', { registered: false });
    expect(port.failed).toHaveLength(1);
  });
});

describe('trunkEndpoint', () => {
  it('omits a password that the trunk lacks', async () => {
    const { trunkId } = await seedCaller(database.sql, { transport: 'tcp', mediaEncryption: 'required' });
    const trunk = (await getTrunkById(database.sql, trunkId))!;
    expect(trunkEndpoint(trunk, secrets, null)).toEqual({
      sipUri: 'sip:127.0.0.1:5070',
      transport: 'tcp',
      nextHop: null,
      username: null,
      password: null,
      codecs: ['PCMU', 'PCMA'],
      hasComfortNoise: false,
      mediaEncryption: 'required',
    });
  });
});

function hopAt(address: string): NextHop {
  return { address, port: null, transport: 'udp' };
}

async function startDialog(
  leg: LegName,
  options: {
    password?: string;
    gateways?: StoredGateway[];
    /** Gateways that stopped answering OPTIONS. */
    gone?: string[];
    sealedFor?: string;
    sql?: Sql;
    row?: CallRow;
    registered?: boolean;
    trunkTargets?: TrunkTargets;
    /** Settings of the trunk when the call was admitted. Default: it is read when dialing. */
    admitted?: Partial<DialedTrunk>;
  } = {},
) {
  const { sql } = database;
  const caller = await seedCaller(sql, options.gateways && { sipUri: 'sip:one.example', gateways: options.gateways });
  if (options.password !== undefined) {
    const sealed = secrets.seal(options.password, trunkPasswordContext(options.sealedFor ?? caller.trunkId));
    await sql`update trunks set username = 'tandem', password_encrypted = ${sealed} where id = ${caller.trunkId}`;
  }
  const call = options.row ?? (await caller.admit());
  const registry = createCallRegistry();
  const live = liveCall(call);
  if (options.admitted) {
    live.trunk = { ...(await getTrunkById(sql, caller.trunkId))!, ...options.admitted };
  }
  if (options.registered !== false) registry.add(live);
  const sip = new FakeSip();
  const logger = createTestLogger();
  const phones = createPhoneDesk({ boot: 'boot-1', webRtc: new FakeWebRtc(), clock: systemClock, logger });
  const signs: TrunkSign[] = [];
  const clock = createTestClock();
  const isGone = (sipUri: string) => options.gone?.includes(sipUri) ?? false;
  const trunks = { dialing: (trunk: DialedTrunk) => everyGateway(trunk, (sign) => void signs.push(sign), isGone) };
  const { trunkTargets = anyTrunkTarget } = options;
  const onReferral = async () => 603;
  const given = { sip, phones, trunks, sql: options.sql ?? sql, secrets, trunkTargets, registry, clock, logger };
  const parts = { ...given, onReferral };
  const port = runPort(dialogPort(parts), {
    callId: call.callId,
    leg,
    local: LOCAL,
  });
  return { port, sip, call, live, registry, clock, logger, signs };
}
