import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicSipTrace } from '../../http/schemas/sip-message.ts';
import { addSipMessages, type StoredSipMessage } from '../../storage/queries/sip-messages.ts';
import { readPcapng } from '../runtime/pcapng-reader.ts';
import { later, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let admin: Member;
let writer: Member;
let stranger: Member;
let path: string;
let callId: string;

beforeAll(async () => {
  fixture = await createHttpFixture();
  const { workspace } = await seedWorkspace(fixture.sql);
  admin = await fixture.addMemberWith('admin', workspace.id);
  writer = await fixture.addMemberWith('developer', workspace.id);
  stranger = await fixture.addMemberWith('owner', (await seedWorkspace(fixture.sql)).workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  ({ callId } = await seedCall(fixture, { by: writer }));
  path = `/dialer/click2call/${callId}/sip`;
  const sdp = 'Content-Type: application/sdp\r\n\r\nv=0\r\n';
  const invite = `INVITE sip:a@b SIP/2.0\r\nCSeq: 1 INVITE\r\n${sdp}`;
  await addSipMessages(fixture.sql, [
    message({ at: later(0), direction: 'sent', text: invite }),
    message({ at: later(500), direction: 'sent', text: invite }),
    message({ at: later(700), text: 'SIP/2.0 180 Ring\u001b[2Jing\r\nCSeq: 1 INVITE\r\n\r\n' }),
    message({ at: later(1_500), leg: 'customer', direction: 'sent', remoteHost: '2001:db8::7', text: invite }),
    message({
      at: later(1_900),
      leg: 'customer',
      remoteHost: '2001:db8::7',
      text: 'SIP/2.0 486\r\nCSeq: 1 INVITE\r\n\r\n',
    }),
    message({ at: later(2_000), text: 'SIP/2.0 200 OK\r\nCSeq: 1 CANCEL\r\n\r\n' }),
  ]);
});
afterAll(() => fixture[Symbol.asyncDispose]());

function message({ text, ...changes }: Partial<StoredSipMessage> & { text: string }): StoredSipMessage {
  return {
    ...{ callId, leg: 'agent', at: later(0), direction: 'received', transport: 'udp', sipCallId: 'a' },
    ...{ localHost: '192.0.2.1', localPort: 5060, remoteHost: '198.51.100.7', remotePort: 5080 },
    ...{ message: Buffer.from(text), isCut: false },
    ...changes,
  };
}

async function text(as: Member, accept: string) {
  const { status, headers, raw } = await fixture.call('GET', path, { as, headers: { accept } });
  return { status, type: headers['content-type'], body: raw.toString().replace(callId, 'CALL') };
}

describe('SIP messages of a call', () => {
  it('returns the messages with their interpretation to admins', async () => {
    const { status, body } = await fixture.call('GET', path, { as: admin });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ call_id: callId, truncated: false });
    const { messages }: PublicSipTrace = body.data;
    expect(
      messages.map((row) => [
        ...[row.offset_ms, row.leg, row.direction, row.method ?? row.status],
        ...[row.has_sdp, row.repeated, row.remote],
      ]),
    ).toEqual([
      [0, 'agent', 'out', 'INVITE', true, false, '198.51.100.7:5080'],
      [500, 'agent', 'out', 'INVITE', true, true, '198.51.100.7:5080'],
      [700, 'agent', 'in', 180, false, false, '198.51.100.7:5080'],
      [1_500, 'customer', 'out', 'INVITE', true, false, '[2001:db8::7]:5080'],
      [1_900, 'customer', 'in', 486, false, false, '[2001:db8::7]:5080'],
      [2_000, 'agent', 'in', 200, false, false, '198.51.100.7:5080'],
    ]);
    expect(messages[0]).toMatchObject({ cseq: '1 INVITE', summary: 'INVITE', local: '192.0.2.1:5060' });
    expect(messages[0]).toMatchObject({
      start_line: 'INVITE sip:a@b SIP/2.0',
      text: expect.stringMatching(/^INVITE sip:a@b SIP\/2\.0\r\n/),
    });
  });

  it('returns a ladder as plain text without terminal control characters', async () => {
    const { status, type, body } = await text(admin, 'text/plain');
    expect({ status, type }).toEqual({ status: 200, type: 'text/plain; charset=utf-8' });
    expect(body).toMatchInlineSnapshot(`
      "Call CALL: 6 SIP messages since 2026-01-02T03:04:05.678Z

                               agent                          Tandem                         customer
                       198.51.100.7:5080 udp              192.0.2.1:5060              [2001:db8::7]:5080 udp
                                 |                               |                               |
          +0.000                 |<------- INVITE (SDP) ---------|                               |
          +0.500                 |<-- INVITE (SDP, repeated) ----|                               |
          +0.700                 |------- 180 Ring?[2Jing ------>|                               |
          +1.500                 |                               |-------- INVITE (SDP) -------->|
          +1.900                 |                               |<------------ 486 -------------|
          +2.000                 |------- 200 OK (CANCEL) ------>|                               |
                                 |                               |                               |
      "
    `);
    expect(await text(admin, 'application/json, text/plain')).toMatchObject({
      type: 'application/json; charset=utf-8',
    });
  });

  it('refuses developers and other workspaces', async () => {
    expect(await fixture.call('GET', path, { as: writer })).toMatchObject({ status: 403 });
    expect(await fixture.call('GET', path, { as: stranger })).toMatchObject({
      status: 404,
      body: { code: 'CALL_NOT_FOUND' },
    });
  });

  it('returns a capture file with times, addresses and legs', async () => {
    const { status, headers, raw } = await fixture.call('GET', `${path}.pcapng`, { as: admin });
    expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: 'application/vnd.tcpdump.pcap' });
    expect(headers['content-disposition']).toBe(`attachment; filename="${callId}.pcapng"`);
    const { comment, packets } = readPcapng(raw);
    expect(comment).toBe(`SIP messages of call ${callId}, with secrets masked. RTP packets are not kept.`);
    expect(packets.map(({ atMs }) => atMs - packets[0]!.atMs)).toEqual([0, 500, 700, 1_500, 1_900, 2_000]);
    expect(packets[0]).toMatchObject({
      ...{ atMs: later(0).getTime(), source: 'c0000201', destination: 'c6336407', direction: 2 },
      ...{ sourcePort: 5060, destinationPort: 5080, comment: 'agent leg, sent by Tandem over udp' },
    });
    expect(packets[2]).toMatchObject({ source: 'c6336407', destination: 'c0000201', direction: 1 });
    expect(packets[0]?.payload.toString()).toMatch(/^INVITE sip:a@b SIP\/2\.0\r\n/);
    for (const as of [writer, stranger]) {
      expect((await fixture.call('GET', `${path}.pcapng`, { as })).status).toBe(as === writer ? 403 : 404);
    }
  });

  it('numbers the segments of a TCP connection in the capture file, with the media quality as a comment', async () => {
    const { callId: id } = await seedCall(fixture, { by: admin, referenceId: 'tcp' });
    await initiate(fixture, id);
    await finish(fixture, id);
    const quality = { agent: null, customer: null };
    await fixture.sql`update calls set quality = ${fixture.sql.json(quality)} where call_id = ${id}`;
    const tcp = { callId: id, transport: 'tcp', remoteHost: null, remotePort: null } as const;
    await addSipMessages(fixture.sql, [
      message({ ...tcp, direction: 'sent', text: 'INVITE' }),
      message({ ...tcp, remoteHost: '198.51.100.7', remotePort: 5080, text: '100' }),
      message({ ...tcp, direction: 'sent', text: 'CANCEL', localHost: null, localPort: null }),
    ]);
    const { raw } = await fixture.call('GET', `/dialer/click2call/${id}/sip.pcapng`, { as: admin });
    const { comment, packets } = readPcapng(raw);
    expect(comment).toContain('Tandem measured this media quality: {"agent":null,"customer":null}');
    expect(packets.map(({ sequence }) => sequence)).toEqual([1, 1, 7]);
    expect(packets.map(({ sourcePort, destinationPort }) => [sourcePort, destinationPort])).toEqual([
      [5060, 5080],
      [5080, 5060],
      [5060, 5080],
    ]);
  });

  it("ends the capture file with an RTCP report of each leg's measurements, at the ports of its used stream", async () => {
    const { callId: id } = await seedCall(fixture, { by: admin, referenceId: 'rtcp' });
    await initiate(fixture, id);
    await finish(fixture, id);
    const agent = {
      packets_received: 750,
      packets_lost: 250,
      jitter_ms: 12.5,
      mos: 3.7,
      snr_db: null,
      encryption: null,
    };
    const quality = { agent: { codec: 'PCMU', ...agent }, customer: null };
    const ended = {
      state: 'ended',
      muted: false,
      mode: null,
      number: null,
      joinedAt: null,
      leftAt: null,
      hangupCause: null,
    };
    const legs = [{ legId: 'agent', role: 'agent', ...ended }];
    await fixture.sql`
      update calls set quality = ${fixture.sql.json(quality)}, legs = ${fixture.sql.json(legs)} where call_id = ${id}`;
    const sdp = (host: string, ...ports: string[]) =>
      `\r\n\r\nv=0\r\nc=IN IP4 ${host}\r\n${ports.map((port) => `m=audio ${port} RTP/AVP 0\r\n`).join('')}`;
    await addSipMessages(fixture.sql, [
      message({ callId: id, text: `INVITE${sdp('198.51.100.7', '0', '4000/1')}` }),
      message({ callId: id, direction: 'sent', text: `SIP/2.0 200 OK${sdp('192.0.2.1', '0', '10000')}` }),
    ]);
    const { raw } = await fixture.call('GET', `/dialer/click2call/${id}/sip.pcapng`, { as: admin });
    const { packets } = readPcapng(raw);
    expect(packets).toHaveLength(3);
    const { payload, ...packet } = packets[2]!;
    expect(packet).toMatchObject({
      source: 'c0000201',
      sourcePort: 10_001,
      destination: 'c6336407',
      destinationPort: 4001,
    });
    expect(packet.comment).toContain('agent leg: not from the wire');
    const [receiverReport, voipMetrics] = [payload.subarray(0, 32), payload.subarray(32)];
    expect([receiverReport[1], receiverReport[12], receiverReport.readUIntBE(13, 3)]).toEqual([201, 64, 250]);
    const jitterInTicks = receiverReport.readUInt32BE(20);
    expect(jitterInTicks).toBe(100);
    expect([voipMetrics[1], voipMetrics[8], voipMetrics[16], voipMetrics[34]]).toEqual([207, 7, 64, 37]);
  });

  it('returns an empty list for an untraced call', async () => {
    const other = await seedCall(fixture, { by: admin, referenceId: 'untraced' });
    const { body } = await fixture.call('GET', `/dialer/click2call/${other.callId}/sip`, { as: admin });
    expect(body.data).toEqual({ call_id: other.callId, truncated: false, messages: [] });
  });
});
