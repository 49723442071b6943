import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dialogPort } from '../../actors/call-dialog.ts';
import { createCallRegistry } from '../../actors/call-registry.ts';
import { createPhoneDesk } from '../../actors/phones/phone-desk.actor.ts';
import { trunkEndpoint } from '../../actors/trunk-dialing.ts';
import type { TrunkTargets } from '../../actors/trunk-targets.ts';
import { TandemError } from '../../machines/errors.ts';
import type { LegName } from '../../machines/events.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { NextHop, TrunkSign } from '../../sip/sip-gateway.ts';
import type { Sql } from '../../storage/database.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import type { StoredGateway } from '../../storage/queries/trunk-gateways.ts';
import { getTrunkById, type TrunkRow } from '../../storage/queries/trunks.ts';
import { trunkPasswordContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
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

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('the dialog of a leg', () => {
  it('dials the agent over the trunk of the call, with its caller ID and the address of its media', async () => {
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

  it('dials the customer at the number of the customer', async () => {
    const { sip, call } = await startDialog('customer');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    expect(sip.legs[0]?.request.calledNumber).toBe(call.customerNumber);
  });

  it('opens the sealed password of the trunk for the gateway', async () => {
    const { sip } = await startDialog('agent', { password: 's3cret of the trunk' });
    await eventually(() => expect(sip.legs).toHaveLength(1));
    expect(sip.legs[0]?.request.trunk).toMatchObject({ username: 'tandem', password: 's3cret of the trunk' });
  });

  it('is lost when the password was sealed for another trunk, and does not say it in the log', async () => {
    const { sip, port, logger } = await startDialog('agent', { password: 's3cret', sealedFor: 'another trunk' });
    await eventually(() => expect(port.told.map(({ type }) => type)).toEqual(['leg.lost']));
    expect(sip.legs).toEqual([]);
    expect(logger.messages('error')).toEqual(['leg could not be dialed']);
    expect(JSON.stringify(logger.lines)).not.toContain('s3cret');
  });

  it('passes on what the gateway reports', async () => {
    const { sip, port } = await startDialog('agent');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    sip.legs[0]?.tell({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
    sip.legs[0]?.tell({ type: 'leg.answered', sipStatus: 200, media: remoteMedia() });
    expect(port.told.map(({ type }) => type)).toEqual(['leg.ringing', 'leg.answered']);
  });

  it('reports what the INVITE shows of the trunk', async () => {
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

    it.each([408, 503])('goes on to the next one after a %i before the callee rings', async (status) => {
      const { dialed, port, sip } = await startOverGateways();
      (await dialed(1)).tell(refused(status));
      (await dialed(2)).tell(refused(status));
      (await dialed(3)).tell({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
      expect(sip.legs.map(({ request }) => request.trunk.sipUri)).toEqual(GATEWAYS.map(({ sipUri }) => sipUri));
      expect(port.told.map(({ type }) => type)).toEqual(['leg.ringing']);
    });

    it('reports the refusal of the last one', async () => {
      const { dialed, port } = await startOverGateways();
      for (const count of [1, 2, 3]) (await dialed(count)).tell(refused(503));
      expect(port.told).toEqual([refused(503)]);
    });

    it.each([404, 486, 500, 603])('takes a %i for the answer of the callee', async (status) => {
      const { dialed, port, sip } = await startOverGateways();
      (await dialed(1)).tell(refused(status));
      expect(port.told).toEqual([refused(status)]);
      expect(sip.legs).toHaveLength(1);
    });

    it('does not ring a callee twice', async () => {
      const { dialed, port, sip } = await startOverGateways();
      const leg = await dialed(1);
      leg.tell({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
      leg.tell(refused(503));
      expect(port.told).toHaveLength(2);
      expect(sip.legs).toHaveLength(1);
    });

    it('does not go on after a hang-up, and hangs up the gateway that is being tried', async () => {
      const { dialed, port, sip } = await startOverGateways();
      (await dialed(1)).tell(refused(503));
      const second = await dialed(2);
      port.send({ type: 'hangup', cause: 'ORIGINATOR_CANCEL' } as never);
      expect(second.hangups).toEqual(['ORIGINATOR_CANCEL']);
      second.tell(refused(503));
      expect(port.told).toEqual([refused(503)]);
      expect(sip.legs).toHaveLength(2);
    });

    it('does not go on when our own SIP server is gone', async () => {
      const { dialed, port, sip } = await startOverGateways();
      const leg = await dialed(1);
      sip.become('disconnected');
      leg.tell(refused(503));
      expect(port.told).toEqual([refused(503)]);
    });

    it('gives up a gateway that says nothing and does not answer OPTIONS any more', async () => {
      const { dialed, clock, port } = await startOverGateways({ gone: ['sip:one.example'] });
      const first = await dialed(1);
      clock.advance(3_000);
      const second = await dialed(2);
      expect(second.request.trunk.sipUri).toBe('sip:two.example');
      expect(first.request.signal.aborted).toBe(true);
      first.tell(refused(487));
      expect(port.told).toEqual([]);
      second.tell({ type: 'leg.answered', sipStatus: 200, media: remoteMedia() });
      clock.advance(3_000);
      expect(port.told.map(({ type }) => type)).toEqual(['leg.answered']);
      expect(second.request.signal.aborted).toBe(false);
    });

    it('waits for a gateway that says nothing while it answers OPTIONS, or has shown a sign', async () => {
      const { dialed, clock, sip } = await startOverGateways({ gone: ['sip:two.example'] });
      const first = await dialed(1);
      clock.advance(3_000);
      await quiet();
      expect(sip.legs).toHaveLength(1);
      first.tell(refused(503));
      (await dialed(2)).request.onSign?.({ type: 'answered' });
      clock.advance(3_000);
      await quiet();
      expect(sip.legs).toHaveLength(2);
    });

    it('passes over a gateway that the trunk may not lead to', async () => {
      const locate: TrunkTargets['locate'] = async (target) => {
        if (target.sipUri === 'sip:one.example') throw new TandemError('TRUNK_HOST_NOT_ALLOWED', 'a private network');
        return await anyTrunkTarget.locate(target);
      };
      const { dialed } = await startOverGateways({ trunkTargets: { locate } });
      expect((await dialed(1)).request.trunk.sipUri).toBe('sip:two.example');
    });

    it('tries the addresses of a gateway in their order, and then the next gateway', async () => {
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
        leg.tell(refused(408));
      }
      expect(port.told).toEqual([refused(408)]);
      // One for each gateway: the first address of the first says nothing about the gateway.
      expect(signs).toEqual([silence, silence, silence]);
    });

    it('goes on to the next address when one says nothing and answers no OPTIONS', async () => {
      const trunkTargets = { locate: async () => [hopAt('192.0.2.1'), hopAt('192.0.2.2')] };
      const { dialed, clock } = await startOverGateways({ trunkTargets, gone: ['sip:one.example'] });
      const first = await dialed(1);
      clock.advance(3_000);
      expect((await dialed(2)).request.trunk.nextHop).toMatchObject({ address: '192.0.2.2' });
      expect(first.request.signal.aborted).toBe(true);
    });
  });

  it('hangs up with the cause it is given', async () => {
    const { sip, port } = await startDialog('agent');
    await eventually(() => expect(sip.legs).toHaveLength(1));
    port.send({ type: 'hangup', cause: 'NO_ANSWER' } as never);
    expect(sip.legs[0]?.hangups).toEqual(['NO_ANSWER']);
  });

  it('sends no INVITE when it is hung up before the trunk was read, and reports 487', async () => {
    const { sip, port } = await startDialog('agent');
    port.send({ type: 'hangup', cause: 'ORIGINATOR_CANCEL' } as never);
    await eventually(() => expect(port.told).toHaveLength(1));
    expect(port.told[0]).toMatchObject({
      type: 'leg.refused',
      sipStatus: 487,
      hangupCause: 'ORIGINATOR_CANCEL',
    });
    expect(sip.legs).toEqual([]);
  });

  it('sends no INVITE when the call ended before the trunk was read', async () => {
    const { sip, port, live } = await startDialog('agent');
    live.abort.abort();
    await eventually(() => expect(port.told).toMatchObject([{ type: 'leg.refused', sipStatus: 487 }]));
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

  it('dials the address that was checked, under the name of the trunk', async () => {
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
    await eventually(() => expect(port.told).toHaveLength(1));
    expect(port.told).toMatchObject([{ type: 'leg.refused', sipStatus: 503, hangupCause: 'NO_ROUTE_DESTINATION' }]);
    expect(sip.legs).toEqual([]);
  });

  it('sends no INVITE to a trunk whose address is not allowed, and reports why', async () => {
    const refused = new TandemError('TRUNK_HOST_NOT_ALLOWED', 'sip_uri leads to a private network.');
    const { sip, port, logger } = await startDialog('agent', {
      trunkTargets: { locate: () => Promise.reject(refused) },
    });
    await eventually(() => expect(port.told).toHaveLength(1));
    expect(port.told).toMatchObject([
      { type: 'leg.refused', hangupCause: 'NO_ROUTE_DESTINATION', detail: 'sip_uri leads to a private network.' },
    ]);
    expect(sip.legs).toEqual([]);
    expect(logger.messages('error')).toEqual([]);
  });

  it('is lost when the trunk cannot be read', async () => {
    const away = (() => Promise.reject(new Error('storage is away'))) as unknown as Sql;
    const { port, sip } = await startDialog('agent', { sql: away });
    await eventually(() => expect(port.told).toMatchObject([{ type: 'leg.lost' }]));
    expect(sip.legs).toEqual([]);
  });

  it('is lost when the trunk is gone', async () => {
    const { port } = await startDialog('agent', { row: callRow() });
    await eventually(() => expect(port.told).toMatchObject([{ type: 'leg.lost' }]));
  });

  it('breaks at once for a call that is not in the registry', async () => {
    const { port } = await startDialog('agent', { registered: false });
    expect(port.failed).toHaveLength(1);
  });
});

describe('what the SIP side is told of a trunk', () => {
  it('has no password when the trunk has none', async () => {
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
    /** Gateways that do not answer OPTIONS any more. */
    gone?: string[];
    sealedFor?: string;
    sql?: Sql;
    row?: CallRow;
    registered?: boolean;
    trunkTargets?: TrunkTargets;
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
  if (options.registered !== false) registry.add(live);
  const sip = new FakeSip();
  const logger = createTestLogger();
  const phones = createPhoneDesk({ webRtc: new FakeWebRtc(), clock: systemClock, logger });
  const signs: TrunkSign[] = [];
  const clock = createTestClock();
  const isGone = (sipUri: string) => options.gone?.includes(sipUri) ?? false;
  const trunks = { dialing: (trunk: TrunkRow) => everyGateway(trunk, (sign) => void signs.push(sign), isGone) };
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
