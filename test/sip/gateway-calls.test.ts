import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { LegEvent } from '../../machines/events.ts';
import type { EmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';
import { createRequest, header, headers, setHeader } from '../../sip/message/index.ts';
import { createDrachtioGateway } from '../../sip/sip-gateway.drachtio.ts';
import type { TrunkSign } from '../../sip/sip-gateway.ts';
import { EventLog } from '../softphone/event-log.ts';
import { dialLeg, trunkOf } from './dialing.ts';
import { differs } from './drachtio-endpoint.ts';
import { SDP, SipPeer } from './embedded/sip-peer.ts';
import { CUSTOMER_NUMBER, startTestSipServer, TestNetwork } from './test-network.ts';

let server: EmbeddedSipServer;
let network: TestNetwork;

beforeAll(async () => {
  server = await startTestSipServer();
});

beforeEach(async () => {
  network = await TestNetwork.on(server);
});

afterEach(() => network.stop());

afterAll(() => server.close());

function types(events: readonly { type: string }[]): string[] {
  return events.map((event) => event.type);
}

describe('answered call', () => {
  test('rings, answers, carries audio in both directions and ends with a local BYE', async () => {
    const phone = await network.phone({ audio: { kind: 'tone', frequencyHz: 700 }, ringForMs: 20 });
    const voice = await network.voice(440);
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(phone.sipUri),
      localMedia: { host: '127.0.0.1', rtpPort: voice.rtpPort },
    });
    const { media } = await dialed.log.until('leg.answered');
    expect(media).toMatchObject({
      host: '127.0.0.1',
      codec: 'PCMU',
      telephoneEventPayloadType: 101,
      direction: 'sendrecv',
    });
    voice.talkTo(media);
    const received = await phone.untilReceived(({ packets }) => packets >= 25);
    const [ours = 0, theirs = 0] = received.toneLevels([440, 700]);
    expect(ours).toBeGreaterThan(-16);
    expect(theirs).toBeLessThan(-40);
    const [back = 0] = voice.receiver.received().toneLevels([700]);
    expect(back).toBeGreaterThan(-16);

    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'NORMAL_CLEARING' });
    expect(await phone.until('bye')).toMatchObject({ by: 'peer', reason: 'Q.850;cause=16;text="NORMAL_CLEARING"' });
    expect(types(dialed.log.all)).toEqual(['leg.ringing', 'leg.answered', 'leg.ended']);
  });

  test('uses the verified address under the name of the trunk', async () => {
    const phone = await network.phone();
    const trunk = trunkOf(`sip:carrier.invalid:${phone.address.port}`, {
      nextHop: { address: '127.0.0.1', port: null },
    });
    const signal = new AbortController().signal;
    expect(await network.gateway.probe(trunk, signal)).toMatchObject({ reachable: true });
    const dialed = dialLeg(network.gateway, { trunk });
    const invite = await phone.until('invite');
    await dialed.log.until('leg.answered');
    expect(invite.uri).toBe(`sip:${CUSTOMER_NUMBER}@carrier.invalid:${phone.address.port}`);
    expect(headers(invite.message, 'Route')).toEqual([]);
    dialed.leg.hangup('NORMAL_CLEARING');
    await dialed.over();
  });

  test('sends the caller id in From and P-Asserted-Identity, and the call id', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(phone.sipUri),
      callerId: '+918012345678',
      callId: 'c-42',
    });
    const invite = await phone.until('invite');
    await dialed.log.until('leg.answered');
    expect(invite.from).toBe('+918012345678');
    expect(invite.assertedIdentity).toMatch(/^<sip:\+918012345678@127\.0\.0\.1(:\d+)?>$/);
    expect(invite.uri).toBe(`sip:${CUSTOMER_NUMBER}@127.0.0.1:${phone.address.port}`);
    expect(header(invite.message, 'X-Tandem-Call-Id')).toBe('c-42');
    expect(invite.message.body.toString()).toContain('m=audio 40000 RTP/AVP 0 8 101');
  });

  test('ends with the BYE of the peer and its cause', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    phone.hangup('Q.850;cause=41;text="Temporary failure"');
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_TEMPORARY_FAILURE' });
  });

  test('ends when its signal aborts', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await dialed.log.until('leg.answered');
    dialed.controller.abort();
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'NORMAL_CLEARING' });
    expect(await phone.until('bye')).toMatchObject({ by: 'peer' });
  });

  test('stays on TCP', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri, { transport: 'tcp' }) });
    expect(await phone.until('invite')).toMatchObject({ transport: 'tcp' });
    const confirmed = await phone.until('confirmed');
    expect(header(confirmed.message, 'Via')).toMatch(/^SIP\/2\.0\/TCP /);
    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'local' });
    await phone.until('bye');
  });

  test('ends with a BYE of the peer over TCP', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri, { transport: 'tcp' }) });
    await phone.until('confirmed');
    phone.hangup();
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'peer' });
  });

  test('uses the codec and telephone-event of the answer', async () => {
    const phone = await network.phone({
      codecs: ['PCMA'],
      alterSdp: (sdp) => sdp.replaceAll('101', '97'),
    });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    const { media } = await dialed.log.until('leg.answered');
    expect(media).toMatchObject({ codec: 'PCMA', payloadType: 8, telephoneEventPayloadType: 97 });
  });

  test('reports DTMF of the peer', async () => {
    const phone = await network.phone();
    const voice = await network.voice(440);
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(phone.sipUri),
      localMedia: { host: '127.0.0.1', rtpPort: voice.rtpPort },
    });
    const { media } = await dialed.log.until('leg.answered');
    voice.talkTo(media);
    voice.press('5');
    voice.press('#');
    const received = await phone.untilReceived(({ digits }) => digits.length === 2);
    expect(received.digits).toBe('5#');
  });
});

describe('early media', () => {
  test('starts with the address of the 183, before the answer', async () => {
    const phone = await network.phone({
      earlyMedia: true,
      answer: 'manual',
      audio: { kind: 'tone', frequencyHz: 425 },
    });
    const voice = await network.voice(440);
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(phone.sipUri),
      localMedia: { host: '127.0.0.1', rtpPort: voice.rtpPort },
    });
    const ringing = await dialed.log.until('leg.ringing');
    expect(ringing.sipStatus).toBe(183);
    expect(ringing.earlyMedia).toMatchObject({ host: '127.0.0.1', rtpPort: phone.call.voice.rtpPort });
    phone.answer();
    const { media } = await dialed.log.until('leg.answered');
    expect(media.rtpPort).toBe(phone.call.voice.rtpPort);
  });

  test('counts as ringing without media if its SDP is invalid', async () => {
    const phone = await network.phone({ earlyMedia: true, answer: 'manual', alterSdp: () => 'v=0\r\nnonsense' });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    expect(await dialed.log.until('leg.ringing')).toEqual({ type: 'leg.ringing', sipStatus: 183, earlyMedia: null });
  });
});

describe('rejected call', () => {
  test.each([
    [486, 'USER_BUSY'],
    [603, 'CALL_REJECTED'],
    [404, 'UNALLOCATED_NUMBER'],
    [480, 'NO_USER_RESPONSE'],
    [503, 'NORMAL_TEMPORARY_FAILURE'],
    [302, 'NORMAL_UNSPECIFIED'],
  ] as const)('with %i ends once, as %s', async (status, hangupCause) => {
    const phone = await network.phone({ answer: { status } });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: status, hangupCause });
    expect(types(dialed.log.all)).toEqual(['leg.ringing', 'leg.refused']);
  });

  test('reports the cause of the network', async () => {
    const phone = await network.phone({ answer: { status: 480, headers: [['Reason', 'Q.850;cause=27']] } });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    expect(await dialed.over()).toMatchObject({ sipStatus: 480, hangupCause: 'DESTINATION_OUT_OF_ORDER' });
  });

  test('to a number unknown to the carrier ends with 404', async () => {
    const carrier = await network.carrier();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(carrier.sipUri) });
    expect(await dialed.over()).toMatchObject({ sipStatus: 404, hangupCause: 'UNALLOCATED_NUMBER' });
    expect(carrier.inviteCounts.get(CUSTOMER_NUMBER)).toBe(1);
  });

  test.each([
    ['no SDP', () => ''],
    ['garbage', () => 'v=0\r\nm=audio banana'],
    ['a codec that was not offered', (sdp: string) => sdp.replace(/RTP\/AVP [\d ]*/, 'RTP/AVP 18')],
    ['a group address', (sdp: string) => sdp.replace(/c=IN IP4 .*/, 'c=IN IP4 239.0.0.1')],
  ])('results from an answer with %s, after ACK and BYE', async (_what, alterSdp) => {
    const phone = await network.phone({ alterSdp });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    expect(await dialed.over()).toMatchObject({
      type: 'leg.refused',
      sipStatus: 488,
      hangupCause: 'INCOMPATIBLE_DESTINATION',
    });
    await phone.until('confirmed');
    expect(await phone.until('bye')).toMatchObject({ by: 'peer' });
    expect(types(dialed.log.all)).toEqual(['leg.ringing', 'leg.refused']);
  });
});

describe('hang-up before the answer', () => {
  test('cancels a ringing phone', async () => {
    const phone = await network.phone({ answer: 'manual' });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await dialed.log.until('leg.ringing');
    dialed.leg.hangup('NO_ANSWER');
    expect(await dialed.over()).toMatchObject({
      type: 'leg.refused',
      sipStatus: 487,
      hangupCause: 'ORIGINATOR_CANCEL',
    });
    const { message } = await phone.until('cancelled');
    expect(header(message, 'Reason')).toBe('Q.850;cause=19;text="NO_ANSWER"');
  });

  test('cancels at the first response of the phone', async () => {
    const phone = await network.phone({ answer: 'manual' });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 487 });
    expect(types(dialed.log.all)).toEqual(['leg.refused']);
    await phone.until('cancelled');
  });

  test('ends the call if it crosses the 200', async () => {
    const phone = await network.phone({ answer: 'manual', answerOnCancel: true });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await dialed.log.until('leg.ringing');
    dialed.leg.hangup('NO_ANSWER');
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'NO_ANSWER' });
    await phone.until('confirmed');
    expect(await phone.until('bye')).toMatchObject({ by: 'peer' });
    expect(types(dialed.log.all)).toEqual(['leg.ringing', 'leg.ended']);
  });
});

describe('trunk authentication', () => {
  test.each([
    [401, 'MD5'],
    [407, 'MD5'],
    [407, 'SHA-256'],
  ] as const)('responds to %i with %s once, in the same call', async (challenge, algorithm) => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge, algorithm };
    const phone = await network.phone();
    const carrier = await network.carrier({ auth, routes: new Map([[CUSTOMER_NUMBER, phone.address]]) });
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(carrier.sipUri, { username: 'tandem', password: 's3cret' }),
    });
    await dialed.log.until('leg.answered');
    const invites = carrier.log.ofType('request').filter(({ method }) => method === 'INVITE');
    expect(new Set(invites.map(({ message }) => header(message, 'Call-ID'))).size).toBe(1);
    expect(new Set(invites.map(({ message }) => header(message, 'From'))).size).toBe(1);
    expect(carrier.inviteCounts.get(CUSTOMER_NUMBER)).toBe(1);
    expect(phone.counts.invites).toBe(1);
  });

  test('also covers a challenged BYE', async () => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 407, inDialog: true } as const;
    const phone = await network.phone();
    const routes = new Map([[CUSTOMER_NUMBER, phone.address]]);
    const carrier = await network.carrier({ auth, routes, recordRoute: true });
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(carrier.sipUri, { username: 'tandem', password: 's3cret' }),
    });
    await phone.until('confirmed');
    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await phone.until('bye')).toMatchObject({ by: 'peer' });
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'local' });
  });

  test('also covers a challenged BYE after a 200 that crosses the CANCEL', async () => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 407, inDialog: true } as const;
    const phone = await network.phone({ answer: 'manual', answerOnCancel: true });
    const routes = new Map([[CUSTOMER_NUMBER, phone.address]]);
    const carrier = await network.carrier({ auth, routes, recordRoute: true });
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(carrier.sipUri, { username: 'tandem', password: 's3cret' }),
    });
    await dialed.log.until('leg.ringing');
    dialed.leg.hangup('NO_ANSWER');
    expect(await phone.until('bye')).toMatchObject({ by: 'peer' });
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'NO_ANSWER' });
  });

  test('answers two proxies with different realms', async () => {
    const account = { username: 'tandem', password: 's3cret', challenge: 407 } as const;
    const auth = ['edge', 'core'].map((realm) => ({ ...account, realm }));
    const phone = await network.phone();
    const carrier = await network.carrier({ auth, routes: new Map([[CUSTOMER_NUMBER, phone.address]]) });
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(carrier.sipUri, { username: 'tandem', password: 's3cret' }),
    });
    await dialed.log.until('leg.answered');
    expect(carrier.transactions('INVITE')).toBe(3);
  });

  test('ends the call after one wrong password', async () => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 401 } as const;
    const carrier = await network.carrier({ auth });
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(carrier.sipUri, { username: 'tandem', password: 'wrong' }),
    });
    expect(await dialed.over()).toEqual({
      ...{ type: 'leg.refused', sipStatus: 401, hangupCause: 'CALL_REJECTED' },
      detail: 'the carrier refused the username or password of the trunk (401 From the carrier)',
    });
    expect(carrier.transactions('INVITE')).toBe(2);
  });

  test('ends the call without a password', async () => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 407 } as const;
    const carrier = await network.carrier({ auth });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(carrier.sipUri) });
    expect(await dialed.over()).toMatchObject({
      ...{ type: 'leg.refused', sipStatus: 407 },
      detail: 'the carrier requires a username and password, which the trunk does not have (407 From the carrier)',
    });
  });

  test('blames the password neither for stale nonces nor for another, unsupported challenge', async () => {
    const account = { username: 'tandem', password: 's3cret' };
    const edge = { ...account, realm: 'edge', challenge: 407 } as const;
    const core = { ...account, realm: 'core', challenge: 401 } as const;
    const stale = await network.carrier({ auth: { ...core, nonceUses: 0 } });
    const unsupported = await network.carrier({ auth: [edge, { ...core, algorithm: 'SHA-512-256' }] });
    const silent = await network.carrier({ auth: core });
    silent.failures.set(CUSTOMER_NUMBER, 401);
    const details = [stale, unsupported, silent].map(async ({ sipUri }) => {
      const dialed = dialLeg(network.gateway, { trunk: trunkOf(sipUri, account) });
      return ((await dialed.over()) as { detail: string }).detail;
    });
    expect(await Promise.all(details)).toEqual([
      'the carrier rejected each of its nonces as stale (401 From the carrier)',
      'the carrier requires an authentication that Tandem does not support (401 From the carrier)',
      'the carrier refused the username or password of the trunk (401 From the carrier)',
    ]);
  });

  test('explains a 403 that may concern the account', async () => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 401 } as const;
    const challenging = await network.carrier({ auth });
    const open = await network.carrier({});
    for (const carrier of [challenging, open]) carrier.failures.set(CUSTOMER_NUMBER, 403);
    const details = [challenging, open].map(async ({ sipUri }) => {
      const dialed = dialLeg(network.gateway, { trunk: trunkOf(sipUri, auth) });
      return ((await dialed.over()) as { detail: string }).detail;
    });
    expect(await Promise.all(details)).toEqual([
      'the carrier refused the username or password of the trunk, or this call (403 From the carrier)',
      'From the carrier',
    ]);
  });
});

describe('record-routing carrier', () => {
  test.each(['udp', 'tcp'] as const)('receives ACK and BYE of both sides over %s', async (transport) => {
    const phone = await network.phone();
    const routes = new Map([[CUSTOMER_NUMBER, phone.address]]);
    const carrier = await network.carrier({ routes, recordRoute: true });
    const trunk = trunkOf(carrier.sipUri, { transport });
    const ours = dialLeg(network.gateway, { trunk });
    const { message } = await phone.until('confirmed');
    expect(headers(message, 'Via')).toHaveLength(2);
    expect(headers(message, 'Route')).toHaveLength(0);
    ours.leg.hangup('NORMAL_CLEARING');
    expect(await ours.over()).toMatchObject({ type: 'leg.ended', by: 'local' });

    const theirs = dialLeg(network.gateway, { trunk });
    await phone.until('confirmed', ({ callId }) => callId === phone.call.callId && phone.calls.length === 2);
    phone.hangup();
    expect(await theirs.over()).toMatchObject({ type: 'leg.ended', by: 'peer' });
    expect(carrier.transactions('BYE')).toBe(2);
  });
});

describe.skipIf(differs('ids'))('call that a proxy routes back to us', () => {
  test('answers and ends each of its two legs', async () => {
    const proxy = await SipPeer.udp();
    network.cleanUp(() => proxy.close());
    const inbound = new EventLog<LegEvent>();
    network.gateway.onCall((call) =>
      call.answer({
        trunk: trunkOf('sip:127.0.0.1'),
        localMedia: { host: '127.0.0.1', rtpPort: 40_010 },
        callId: 'call-2',
        leg: 'customer',
        signal: new AbortController().signal,
        onEvent: (event) => inbound.add(event),
      }),
    );
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(`sip:127.0.0.1:${proxy.port}`),
      localMedia: { host: '127.0.0.1', rtpPort: 40_020 },
    });
    const invite = await proxy.request('INVITE');
    const routed = createRequest({ method: 'INVITE', uri: invite.uri, body: SDP });
    routed.headers = invite.headers.filter(({ key }) =>
      ['from', 'to', 'call-id', 'cseq', 'content-type'].includes(key),
    );
    setHeader(routed, 'Via', proxy.via('z9hG4bK-routed'));
    setHeader(routed, 'Contact', `<${proxy.uri}>`);
    proxy.send(routed, network.sipAddress.port);
    const ok = await proxy.response(200);
    const sequence = Number.parseInt(header(invite, 'cseq') ?? '', 10);
    proxy.send(proxy.within(routed, ok, 'ACK', sequence));
    await inbound.until('leg.answered');
    const answer = proxy.reply(invite, 200, { body: SDP });
    await proxy.request('ACK');
    await dialed.log.until('leg.answered');

    proxy.send(proxy.within(routed, ok, 'BYE', sequence + 1));
    expect(await inbound.until('leg.ended')).toMatchObject({ by: 'peer' });
    proxy.send(proxy.withinAnswered(invite, answer, 'BYE', 1));
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'peer' });
  });
});

describe('renegotiation by the peer', () => {
  test('reports hold and resume and answers accordingly', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    expect(await phone.hold()).toBe(200);
    expect(await dialed.log.until('leg.media')).toMatchObject({ media: { direction: 'sendonly' } });
    expect(await phone.unhold()).toBe(200);
    await dialed.log.until('leg.media', ({ media }) => media.direction === 'sendrecv');
    expect(types(dialed.log.all)).toEqual(['leg.ringing', 'leg.answered', 'leg.media', 'leg.media']);
  });

  test('treats a zero address as hold', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    expect(await phone.call.offerAgain('sendrecv', { connection: '0.0.0.0' })).toBe(200);
    expect(await dialed.log.until('leg.media')).toMatchObject({ media: { direction: 'sendonly' } });
  });

  test('rejects unusable media with 488 and continues the call', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    expect(await phone.call.offerAgain('sendrecv', { connection: '239.1.1.1' })).toBe(488);
    phone.hangup();
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'peer' });
    expect(dialed.log.ofType('leg.media')).toEqual([]);
  });

  test.each([
    ['INFO', 'Signal=5\r\nDuration=160\r\n', 200],
    ['OPTIONS', '', 200],
    ['UPDATE', '', 200],
    ['REFER', '', 603],
    ['MESSAGE', 'hello', 405],
  ])('answers %s', async (method, body, status) => {
    const phone = await network.phone();
    dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    const contentType = body === '' ? [] : ([['Content-Type', 'application/dtmf-relay']] as const);
    const referTo = method === 'REFER' ? ([['Refer-To', '<sip:1@127.0.0.1>']] as const) : [];
    expect(await phone.call.send(method, [...contentType, ...referTo], body)).toBe(status);
  });
});

describe('a session timer (RFC 4028)', () => {
  test('appears in the INVITE, refreshed by the peer', async () => {
    const phone = await network.phone();
    dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    const { message } = await phone.until('invite');
    expect(header(message, 'Session-Expires')).toBe('1800;refresher=uas');
    expect(headers(message, 'Supported')).toEqual(['timer', '100rel']);
  });

  test('accepts the value of the peer unless it is too short', async () => {
    const phone = await network.phone();
    dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    const update = (value: string) => phone.call.ask('UPDATE', [['Session-Expires', value]], '');
    const agreed = await update('600;refresher=uac');
    expect([agreed.statusCode, header(agreed, 'Session-Expires'), header(agreed, 'Require')]).toEqual([
      200,
      '600;refresher=uac',
      'timer',
    ]);
    const refused = await update('60');
    expect([refused.statusCode, header(refused, 'Min-SE')]).toEqual([422, '90']);
  });
});

describe('DTMF by INFO', () => {
  const RELAY = [['Content-Type', 'application/dtmf-relay']] as const;
  const withoutEvents = (sdp: string) =>
    sdp.replace(/(m=audio .*) 101/, '$1').replace(/a=(rtpmap|fmtp):101 .*\r\n/g, '');

  async function answered(alterSdp = withoutEvents) {
    const phone = await network.phone({ alterSdp });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    const pressed = () => dialed.log.ofType('leg.pressed').map(({ digit, durationMs }) => `${digit} ${durationMs}`);
    return { phone, dialed, pressed };
  }

  test('reports digit and duration for both content types', async () => {
    const { phone, pressed } = await answered();
    expect(await phone.call.send('INFO', RELAY, 'Signal=5\r\nDuration=200\r\n')).toBe(200);
    expect(await phone.call.send('INFO', [['Content-Type', 'application/dtmf']], '#')).toBe(200);
    expect(pressed()).toEqual(['5 200', '# 160']);
  });

  test('counts for nothing from a peer that negotiated telephone events', async () => {
    const { phone, pressed } = await answered((sdp) => sdp);
    expect(await phone.call.send('INFO', RELAY, 'Signal=5\r\n')).toBe(200);
    expect(pressed()).toEqual([]);
  });

  test('gets 400 if malformed, and 415 with Accept for another type', async () => {
    const { phone, pressed } = await answered();
    expect(await phone.call.send('INFO', RELAY, 'Signal=55\r\n')).toBe(400);
    const refused = await phone.call.ask('INFO', [['Content-Type', 'application/xml']], '<x/>');
    expect(refused.statusCode).toBe(415);
    expect(headers(refused, 'Accept')).toEqual(['application/dtmf-relay', 'application/dtmf']);
    expect(pressed()).toEqual([]);
  });

  test('counts once if the request is repeated', async () => {
    const { phone, pressed } = await answered();
    const asked = phone.call.ask('INFO', RELAY, 'Signal=5\r\n', { copies: 3 });
    expect((await asked).statusCode).toBe(200);
    expect(await phone.call.send('INFO', RELAY, 'Signal=6\r\n')).toBe(200);
    expect(pressed()).toEqual(['5 160', '6 160']);
  });

  test('counts twenty times a second at most', async () => {
    const { phone, pressed } = await answered();
    // An integer, because a sum of fractions may be a little less than a second later.
    const startMs = Math.ceil(performance.now()) + 1000;
    const clock = vi.spyOn(performance, 'now').mockReturnValue(startMs);
    onTestFinished(() => clock.mockRestore());
    const press = () => phone.call.send('INFO', RELAY, 'Signal=1\r\n');
    expect(new Set(await Promise.all(Array.from({ length: 60 }, press)))).toEqual(new Set([200]));
    expect(pressed()).toHaveLength(20);
    clock.mockReturnValue(startMs + 1000);
    await press();
    expect(pressed()).toHaveLength(21);
  });
});

describe('local hold', () => {
  test('offers sendonly, accepts recvonly, and offers sendrecv on resume', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    dialed.leg.hold(true);
    expect(await dialed.log.until('leg.media')).toMatchObject({ media: { direction: 'recvonly' } });
    expect(await phone.until('reinvite')).toMatchObject({ media: { direction: 'sendonly' } });
    dialed.leg.hold(false);
    await dialed.log.until('leg.media', ({ media }) => media.direction === 'sendrecv');
    await phone.until('reinvite', ({ media }) => media.direction === 'sendrecv');
    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'local' });
  });

  test('applies the last of several changes, one offer at a time', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    for (const isHeld of [true, false, true, false, true]) dialed.leg.hold(isHeld);
    await dialed.log.until('leg.media', ({ media }) => media.direction === 'recvonly');
    dialed.leg.hangup('NORMAL_CLEARING');
    await dialed.over();
    expect(phone.log.ofType('reinvite').at(-1)).toMatchObject({ media: { direction: 'sendonly' } });
  });

  test('authenticates to a carrier on a challenge', async () => {
    const phone = await network.phone();
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 407, inDialog: true } as const;
    const routes = new Map([[CUSTOMER_NUMBER, phone.address]]);
    const carrier = await network.carrier({ auth, routes, recordRoute: true });
    const trunk = trunkOf(carrier.sipUri, { username: 'tandem', password: 's3cret' });
    const dialed = dialLeg(network.gateway, { trunk });
    await phone.until('confirmed');
    dialed.leg.hold(true);
    expect(await dialed.log.until('leg.media')).toMatchObject({ media: { direction: 'recvonly' } });
    dialed.leg.hold(false);
    await dialed.log.until('leg.media', ({ media }) => media.direction === 'sendrecv');
  });

  test('combines with a hold by the peer to inactive', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    dialed.leg.hold(true);
    await dialed.log.until('leg.media');
    expect(await phone.call.offerAgain('sendonly')).toBe(200);
    expect(phone.call.remote?.direction).toBe('inactive');
    expect(await phone.call.offerAgain('sendrecv')).toBe(200);
    expect(phone.call.remote?.direction).toBe('sendonly');
  });

  test('repeats an offer that collided with one of the peer', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    const theirs = phone.call.offerAgain('sendrecv');
    await dialed.log.until('leg.media');
    dialed.leg.hold(true);
    await theirs;
    // The response arrives after the ACK of the peer's INVITE.
    await phone.call.send('OPTIONS', [], '');
    const met = await Promise.race([
      dialed.log.until('leg.glare').then(() => 'glare'),
      phone.until('reinvite').then(() => 'offered'),
    ]);
    // The leg machine does this after a delay.
    if (met === 'glare') dialed.leg.offerAgain();
    expect(await phone.until('reinvite')).toMatchObject({ media: { direction: 'sendonly' } });
    dialed.leg.hangup('NORMAL_CLEARING');
    await dialed.over();
  });

  test('does nothing before the answer', async () => {
    const phone = await network.phone({ answer: 'manual' });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await dialed.log.until('leg.ringing');
    dialed.leg.hold(true);
    phone.answer();
    await phone.until('confirmed');
    expect(phone.log.ofType('reinvite')).toEqual([]);
  });
});

describe.skipIf(differs('deaths'))('SIP server connection', () => {
  test('loses every leg when the server stops', async () => {
    const mortal = await TestNetwork.start();
    onTestFinished(() => mortal.stop());
    const phone = await mortal.phone();
    const talking = dialLeg(mortal.gateway, { trunk: trunkOf(phone.sipUri) });
    await talking.log.until('leg.answered');
    const silent = await mortal.phone({ answer: 'manual' });
    const ringing = dialLeg(mortal.gateway, { trunk: trunkOf(silent.sipUri) });
    await ringing.log.until('leg.ringing');
    await mortal.server.close();
    expect(await talking.over()).toMatchObject({ type: 'leg.lost' });
    expect(await ringing.over()).toMatchObject({ type: 'leg.lost' });
    expect(mortal.gateway.state).toBe('disconnected');
  });

  test('fails with a wrong secret', async () => {
    const { controlHost: host, controlPort: port } = server;
    await expect(createDrachtioGateway({ host, port, secret: 'wrong' })).rejects.toMatchObject({
      code: 'server.secret_refused',
    });
  });

  test('hangs up all calls when the gateway closes', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    await network.gateway.close();
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'SYSTEM_SHUTDOWN' });
    await phone.until('bye');
  });
});

describe('trunk sign', () => {
  async function signsOf(trunk: ReturnType<typeof trunkOf>) {
    const signs: TrunkSign[] = [];
    const dialed = dialLeg(network.gateway, { trunk, onSign: (sign) => signs.push(sign) });
    await dialed.over();
    return signs;
  }

  test('counts any rejection of a call as an answer', async () => {
    const carrier = await network.carrier();
    carrier.failures.set(CUSTOMER_NUMBER, 503);
    expect(await signsOf(trunkOf(carrier.sipUri))).toEqual([{ type: 'answered' }]);
  });

  test('counts as one answer for a call that is challenged, rings and is answered', async () => {
    const auth = { username: 'me', password: 'secret', realm: 'r', challenge: 407 } as const;
    const phone = await network.phone();
    const carrier = await network.carrier({ auth, routes: new Map([[CUSTOMER_NUMBER, phone.address]]) });
    const signs: TrunkSign[] = [];
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(carrier.sipUri, auth),
      onSign: (sign) => signs.push(sign),
    });
    await dialed.log.until('leg.answered');
    expect(signs).toEqual([{ type: 'answered' }]);
  });

  test('reports a transport error for a refused connection', async () => {
    const carrier = await network.carrier();
    const trunk = trunkOf(carrier.sipUri, { transport: 'tcp' });
    await carrier.stop();
    expect(await signsOf(trunk)).toEqual([{ type: 'unanswered', reason: 'transport_error' }]);
  });

  test.skipIf(differs('timers'))(
    'reports no response when the INVITE times out, even after the leg was aborted',
    async () => {
      const impatient = await TestNetwork.start({}, { t1Ms: 5 });
      onTestFinished(() => impatient.stop());
      const carrier = await impatient.carrier();
      carrier.isSilent = true;
      const { promise: sign, resolve } = Promise.withResolvers<TrunkSign>();
      const dialed = dialLeg(impatient.gateway, { trunk: trunkOf(carrier.sipUri), onSign: resolve });
      await carrier.log.until('request', ({ method }) => method === 'INVITE');
      dialed.controller.abort();
      expect(await sign).toEqual({ type: 'unanswered', reason: 'no_response' });
    },
  );
});

describe('trunk probe', () => {
  const signal = new AbortController().signal;

  test.each(['udp', 'tcp'] as const)('succeeds with a response to OPTIONS over %s', async (transport) => {
    const carrier = await network.carrier();
    const probe = await network.gateway.probe(trunkOf(carrier.sipUri, { transport }), signal);
    expect(probe).toMatchObject({ reachable: true, sipStatus: 200 });
  });

  test('succeeds with an error response', async () => {
    const carrier = await network.carrier();
    carrier.failures.set('', 503);
    const probe = await network.gateway.probe(trunkOf(carrier.sipUri), signal);
    expect(probe.reachable).toBe(true);
  });

  test('fails if the trunk is unreachable', async () => {
    const carrier = await network.carrier();
    const trunk = trunkOf(carrier.sipUri, { transport: 'tcp' });
    await carrier.stop();
    const probe = await network.gateway.probe(trunk, signal);
    expect(probe).toMatchObject({ reachable: false, silence: 'transport_error' });
  });

  test('ends when its signal aborts', async () => {
    const carrier = await network.carrier();
    carrier.isSilent = true;
    const controller = new AbortController();
    const probing = network.gateway.probe(trunkOf(carrier.sipUri), controller.signal);
    await carrier.log.until('request', ({ method }) => method === 'OPTIONS');
    controller.abort();
    expect(await probing).toMatchObject({ reachable: false, sipStatus: null });
  });
});

test('an incoming call without a handler gets 480', async () => {
  const phone = await network.phone();
  const { host, port } = network.sipAddress;
  const status = await phone.sendOutside('INVITE', `sip:+918000000001@${host}:${port}`);
  expect(status).toBe(480);
  expect(await phone.sendOutside('OPTIONS', `sip:${host}:${port}`)).toBe(200);
});

test('many concurrent calls each end exactly once and leave nothing behind', async () => {
  const phones = await Promise.all([
    network.phone({ audio: { kind: 'none' } }),
    network.phone({ answer: { status: 486 } }),
    network.phone({ answer: 'manual' }),
    network.phone({ answer: 'manual', answerOnCancel: true, audio: { kind: 'none' } }),
    network.phone({ earlyMedia: true, ringForMs: 5, autoHangupAfterMs: 5, audio: { kind: 'none' } }),
  ]);
  const dialed = Array.from({ length: 60 }, (_, index) => {
    const phone = phones[index % phones.length]!;
    const transport = index % 2 === 0 ? 'udp' : 'tcp';
    return dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri, { transport }), callId: `call-${index}` });
  });
  await Promise.all(
    dialed.map(async ({ leg, log, over }, index) => {
      if (index % 3 > 0) await log.untilAny(() => true, 'first event');
      if (index % phones.length !== 4) leg.hangup('NORMAL_CLEARING');
      await over();
    }),
  );
  for (const { log } of dialed) {
    const ends = log.all.filter(({ type }) => type === 'leg.refused' || type === 'leg.ended' || type === 'leg.lost');
    expect(ends).toHaveLength(1);
    expect(log.all.at(-1)).toBe(ends[0]);
  }
  expect(network.gateway.dump()).toMatchObject({ legs: [], counters: { dialed: 60, faults: 0 } });
});

describe.skipIf(differs('timers'))('lossy network', () => {
  let quickServer: EmbeddedSipServer;
  let quick: TestNetwork;

  beforeAll(async () => {
    quickServer = await startTestSipServer({ t1Ms: 40 });
  });

  beforeEach(async () => {
    quick = await TestNetwork.on(quickServer);
  });

  afterEach(() => quick.stop());

  afterAll(() => quickServer.close());

  test('rings the phone once after a lost INVITE', async () => {
    const phone = await quick.phone();
    const carrier = await quick.carrier({ routes: new Map([[CUSTOMER_NUMBER, phone.address]]) });
    carrier.isSilent = true;
    const dialed = dialLeg(quick.gateway, { trunk: trunkOf(carrier.sipUri) });
    await carrier.log.until('request');
    carrier.isSilent = false;
    await dialed.log.until('leg.answered');
    expect(phone.counts.invites).toBe(1);
  });

  test('acknowledges the answer after a lost ACK', async () => {
    const phone = await quick.phone({ answer: 'manual' });
    const routes = new Map([[CUSTOMER_NUMBER, phone.address]]);
    const carrier = await quick.carrier({ recordRoute: true, routes });
    const dialed = dialLeg(quick.gateway, { trunk: trunkOf(carrier.sipUri) });
    await dialed.log.until('leg.ringing');
    phone.answer();
    await carrier.log.until('response', ({ status }) => status === 200);
    carrier.isSilent = true;
    await carrier.log.until('request', ({ method }) => method === 'ACK');
    carrier.isSilent = false;
    await phone.until('confirmed');
    expect(types(dialed.log.all)).toEqual(['leg.ringing', 'leg.answered']);
  });

  test('reports 408 for a silent trunk', async () => {
    const carrier = await quick.carrier();
    carrier.isSilent = true;
    const dialed = dialLeg(quick.gateway, { trunk: trunkOf(carrier.sipUri) });
    expect(await dialed.over()).toMatchObject({
      type: 'leg.refused',
      sipStatus: 408,
      hangupCause: 'RECOVERY_ON_TIMER_EXPIRE',
    });
  });

  test.each(['udp', 'tcp'] as const)('reports 503 for a closed %s port', async (transport) => {
    const carrier = await quick.carrier();
    const trunk = trunkOf(carrier.sipUri, { transport });
    await carrier.stop();
    expect(await dialLeg(quick.gateway, { trunk }).over()).toMatchObject({
      type: 'leg.refused',
      sipStatus: 503,
      hangupCause: 'NORMAL_TEMPORARY_FAILURE',
    });
  });
});
