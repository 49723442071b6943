import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dialogPort, trunkEndpoint } from '../../actors/call-dialog.ts';
import { createCallRegistry } from '../../actors/call-registry.ts';
import { createPhoneDesk } from '../../actors/phones/phone-desk.actor.ts';
import type { LegName } from '../../machines/events.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { getTrunkById } from '../../storage/queries/trunks.ts';
import { trunkPasswordContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { callRow, createTestLogger, FakeSip, liveCall, remoteMedia, runPort } from './fakes.ts';
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
    expect(trunkEndpoint(trunk, secrets)).toEqual({
      sipUri: 'sip:127.0.0.1:5070',
      transport: 'tcp',
      username: null,
      password: null,
      codecs: ['PCMU', 'PCMA'],
      hasComfortNoise: false,
      mediaEncryption: 'required',
    });
  });
});

async function startDialog(
  leg: LegName,
  options: {
    password?: string;
    sealedFor?: string;
    sql?: Sql;
    row?: CallRow;
    registered?: boolean;
  } = {},
) {
  const { sql } = database;
  const caller = await seedCaller(sql);
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
  const port = runPort(dialogPort({ sip, phones, sql: options.sql ?? sql, secrets, registry, logger }), {
    callId: call.callId,
    leg,
    local: LOCAL,
  });
  return { port, sip, call, live, registry, logger };
}
