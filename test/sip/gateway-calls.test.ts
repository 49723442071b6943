import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { header, headers } from '../../sip/message/index.ts';
import { createDrachtioGateway } from '../../sip/sip-gateway.drachtio.ts';
import type { TrunkSign } from '../../sip/sip-gateway.ts';
import { dialLeg, trunkOf } from './dialing.ts';
import { differs } from './drachtio-endpoint.ts';
import { CUSTOMER_NUMBER, TestNetwork } from './test-network.ts';

let network: TestNetwork;

beforeEach(async () => {
  network = await TestNetwork.start();
});

afterEach(() => network.stop());

function types(events: readonly { type: string }[]): string[] {
  return events.map((event) => event.type);
}

describe('an answered call', () => {
  test('rings, answers, carries audio both ways, and ends with our BYE', async () => {
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
    const heard = await phone.untilHeard(({ packets }) => packets >= 25);
    const [ours = 0, theirs = 0] = heard.toneLevels([440, 700]);
    expect(ours).toBeGreaterThan(-16);
    expect(theirs).toBeLessThan(-40);
    const [back = 0] = voice.hearing.heard().toneLevels([700]);
    expect(back).toBeGreaterThan(-16);

    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'NORMAL_CLEARING' });
    expect(await phone.until('bye')).toMatchObject({ by: 'peer', reason: 'Q.850;cause=16;text="NORMAL_CLEARING"' });
    expect(types(dialed.log.all)).toEqual(['leg.ringing', 'leg.answered', 'leg.ended']);
  });

  test('goes to the address that was checked, under the name of the trunk', async () => {
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

  test('shows the caller id in From and P-Asserted-Identity, and our call id', async () => {
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

  test('ends with the BYE of the peer, and with its cause', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    phone.hangup('Q.850;cause=41;text="Temporary failure"');
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_TEMPORARY_FAILURE' });
  });

  test('ends when its signal is aborted', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await dialed.log.until('leg.answered');
    dialed.controller.abort();
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'NORMAL_CLEARING' });
    expect(await phone.until('bye')).toMatchObject({ by: 'peer' });
  });

  test('over TCP stays on TCP to its end', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri, { transport: 'tcp' }) });
    expect(await phone.until('invite')).toMatchObject({ transport: 'tcp' });
    const confirmed = await phone.until('confirmed');
    expect(header(confirmed.message, 'Via')).toMatch(/^SIP\/2\.0\/TCP /);
    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'local' });
    await phone.until('bye');
  });

  test('that the peer ends over TCP is ended here too', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri, { transport: 'tcp' }) });
    await phone.until('confirmed');
    phone.hangup();
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'peer' });
  });

  test('takes the codec and the telephone-event that the peer chose', async () => {
    const phone = await network.phone({
      codecs: ['PCMA'],
      alterSdp: (sdp) => sdp.replaceAll('101', '97'),
    });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    const { media } = await dialed.log.until('leg.answered');
    expect(media).toMatchObject({ codec: 'PCMA', payloadType: 8, telephoneEventPayloadType: 97 });
  });

  test('carries the digits that the peer presses', async () => {
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
    const heard = await phone.untilHeard(({ digits }) => digits.length === 2);
    expect(heard.digits).toBe('5#');
  });
});

describe('early media', () => {
  test('is told with the address of the 183, before the answer', async () => {
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

  test('that cannot be read is ringing without media', async () => {
    const phone = await network.phone({ earlyMedia: true, answer: 'manual', alterSdp: () => 'v=0\r\nnonsense' });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    expect(await dialed.log.until('leg.ringing')).toEqual({ type: 'leg.ringing', sipStatus: 183, earlyMedia: null });
  });
});

describe('a refused call', () => {
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

  test("carries the network's own cause", async () => {
    const phone = await network.phone({ answer: { status: 480, headers: [['Reason', 'Q.850;cause=27']] } });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    expect(await dialed.over()).toMatchObject({ sipStatus: 480, hangupCause: 'DESTINATION_OUT_OF_ORDER' });
  });

  test('to a number that the carrier does not know is 404', async () => {
    const carrier = await network.carrier();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(carrier.sipUri) });
    expect(await dialed.over()).toMatchObject({ sipStatus: 404, hangupCause: 'UNALLOCATED_NUMBER' });
    expect(carrier.inviteCounts.get(CUSTOMER_NUMBER)).toBe(1);
  });

  test.each([
    ['no SDP', () => ''],
    ['garbage', () => 'v=0\r\nm=audio banana'],
    ['a codec that we did not offer', (sdp: string) => sdp.replace(/RTP\/AVP [\d ]*/, 'RTP/AVP 18')],
    ['a group address', (sdp: string) => sdp.replace(/c=IN IP4 .*/, 'c=IN IP4 239.0.0.1')],
  ])('is what an answer with %s becomes, after ACK and BYE', async (_what, alterSdp) => {
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

describe('hanging up before the answer', () => {
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

  test('right after dialing cancels as soon as the phone shows that it is there', async () => {
    const phone = await network.phone({ answer: 'manual' });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 487 });
    expect(types(dialed.log.all)).toEqual(['leg.refused']);
    await phone.until('cancelled');
  });

  test('that crosses the 200 ends the answered call', async () => {
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

describe('a trunk that asks who we are', () => {
  test.each([
    [401, 'MD5'],
    [407, 'MD5'],
    [407, 'SHA-256'],
  ] as const)('with %i and %s gets one answer, in the same call', async (challenge, algorithm) => {
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

  test('also before the BYE gets an answer to that', async () => {
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

  test('and does not like the password is refused, once', async () => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 401 } as const;
    const carrier = await network.carrier({ auth });
    const dialed = dialLeg(network.gateway, {
      trunk: trunkOf(carrier.sipUri, { username: 'tandem', password: 'wrong' }),
    });
    expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 401, hangupCause: 'CALL_REJECTED' });
    expect(carrier.transactions('INVITE')).toBe(2);
  });

  test('when we have no password is refused', async () => {
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 407 } as const;
    const carrier = await network.carrier({ auth });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(carrier.sipUri) });
    expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 407 });
  });
});

describe('a carrier in the path', () => {
  test.each(['udp', 'tcp'] as const)(
    'that asked to stay there over %s sees ACK and BYE of both sides',
    async (transport) => {
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
    },
  );
});

describe('a peer that changes its mind', () => {
  test('is on hold and off again, and each time we are told and it is answered in kind', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    expect(await phone.hold()).toBe(200);
    expect(await dialed.log.until('leg.media')).toMatchObject({ media: { direction: 'sendonly' } });
    expect(await phone.unhold()).toBe(200);
    await dialed.log.until('leg.media', ({ media }) => media.direction === 'sendrecv');
    expect(types(dialed.log.all)).toEqual(['leg.ringing', 'leg.answered', 'leg.media', 'leg.media']);
  });

  test('by a zero address is on hold too', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    expect(await phone.call.offerAgain('sendrecv', { connection: '0.0.0.0' })).toBe(200);
    expect(await dialed.log.until('leg.media')).toMatchObject({ media: { direction: 'sendonly' } });
  });

  test('to something that we cannot play hears 488, and the call goes on', async () => {
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
  ])('is answered when it sends %s', async (method, body, status) => {
    const phone = await network.phone();
    dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    const contentType = body === '' ? [] : ([['Content-Type', 'application/dtmf-relay']] as const);
    const referTo = method === 'REFER' ? ([['Refer-To', '<sip:1@127.0.0.1>']] as const) : [];
    expect(await phone.call.send(method, [...contentType, ...referTo], body)).toBe(status);
  });
});

describe('a session timer (RFC 4028)', () => {
  test('is asked for in the INVITE, with the peer to refresh', async () => {
    const phone = await network.phone();
    dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    const { message } = await phone.until('invite');
    expect(header(message, 'Session-Expires')).toBe('1800;refresher=uas');
    expect(headers(message, 'Supported')).toEqual(['timer', '100rel']);
  });

  test('is agreed to when the peer asks for it, if it is not too short for us', async () => {
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

describe('a key that comes in an INFO', () => {
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

  test('is reported with its duration, in both types', async () => {
    const { phone, pressed } = await answered();
    expect(await phone.call.send('INFO', RELAY, 'Signal=5\r\nDuration=200\r\n')).toBe(200);
    expect(await phone.call.send('INFO', [['Content-Type', 'application/dtmf']], '#')).toBe(200);
    expect(pressed()).toEqual(['5 200', '# 160']);
  });

  test('is ignored from a peer that agreed to telephone events', async () => {
    const { phone, pressed } = await answered((sdp) => sdp);
    expect(await phone.call.send('INFO', RELAY, 'Signal=5\r\n')).toBe(200);
    expect(pressed()).toEqual([]);
  });

  test('gets 400 when malformed, and 415 with Accept in another type', async () => {
    const { phone, pressed } = await answered();
    expect(await phone.call.send('INFO', RELAY, 'Signal=55\r\n')).toBe(400);
    const refused = await phone.call.ask('INFO', [['Content-Type', 'application/xml']], '<x/>');
    expect(refused.statusCode).toBe(415);
    expect(headers(refused, 'Accept')).toEqual(['application/dtmf-relay', 'application/dtmf']);
    expect(pressed()).toEqual([]);
  });

  test('is reported once when the request is repeated', async () => {
    const { phone, pressed } = await answered();
    const asked = phone.call.ask('INFO', RELAY, 'Signal=5\r\n', { copies: 3 });
    expect((await asked).statusCode).toBe(200);
    expect(await phone.call.send('INFO', RELAY, 'Signal=6\r\n')).toBe(200);
    expect(pressed()).toEqual(['5 160', '6 160']);
  });

  test('is reported twenty times a second at most', async () => {
    const { phone, pressed } = await answered();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1000);
    onTestFinished(() => clock.mockRestore());
    const press = () => phone.call.send('INFO', RELAY, 'Signal=1\r\n');
    expect(new Set(await Promise.all(Array.from({ length: 60 }, press)))).toEqual(new Set([200]));
    expect(pressed()).toHaveLength(20);
    clock.mockReturnValue(performance.now() + 1000);
    await press();
    expect(pressed()).toHaveLength(21);
  });
});

describe('a peer that we put on hold', () => {
  test('is offered sendonly, answers that it listens, and is offered sendrecv when it is taken off', async () => {
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

  test('hears the last of several wishes, one offer after another', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    for (const isHeld of [true, false, true, false, true]) dialed.leg.hold(isHeld);
    await dialed.log.until('leg.media', ({ media }) => media.direction === 'recvonly');
    dialed.leg.hangup('NORMAL_CLEARING');
    await dialed.over();
    expect(phone.log.ofType('reinvite').at(-1)).toMatchObject({ media: { direction: 'sendonly' } });
  });

  test('may have a carrier before it that asks for credentials', async () => {
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

  test('that puts us on hold as well is answered inactive, and hears nothing', async () => {
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

  test('is offered again when the first offer met one of its own', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    const theirs = phone.call.offerAgain('sendrecv');
    await dialed.log.until('leg.media');
    dialed.leg.hold(true);
    await theirs;
    // Its response comes after the ACK of their INVITE has arrived.
    await phone.call.send('OPTIONS', [], '');
    const met = await Promise.race([
      dialed.log.until('leg.glare').then(() => 'glare'),
      phone.until('reinvite').then(() => 'offered'),
    ]);
    // As the leg machine does after a while.
    if (met === 'glare') dialed.leg.offerAgain();
    expect(await phone.until('reinvite')).toMatchObject({ media: { direction: 'sendonly' } });
    dialed.leg.hangup('NORMAL_CLEARING');
    await dialed.over();
  });

  test('keeps the call when nothing was answered yet: there is nobody to be told', async () => {
    const phone = await network.phone({ answer: 'manual' });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await dialed.log.until('leg.ringing');
    dialed.leg.hold(true);
    phone.answer();
    await phone.until('confirmed');
    expect(phone.log.ofType('reinvite')).toEqual([]);
  });
});

describe.skipIf(differs('deaths'))('the SIP server', () => {
  test('that goes away loses every leg', async () => {
    const phone = await network.phone();
    const talking = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await talking.log.until('leg.answered');
    const silent = await network.phone({ answer: 'manual' });
    const ringing = dialLeg(network.gateway, { trunk: trunkOf(silent.sipUri) });
    await ringing.log.until('leg.ringing');
    await network.server.close();
    expect(await talking.over()).toMatchObject({ type: 'leg.lost' });
    expect(await ringing.over()).toMatchObject({ type: 'leg.lost' });
    expect(network.gateway.state).toBe('disconnected');
  });

  test('does not take a wrong secret', async () => {
    const { controlHost: host, controlPort: port } = network.server;
    await expect(createDrachtioGateway({ host, port, secret: 'wrong' })).rejects.toMatchObject({
      code: 'server.secret_refused',
    });
  });

  test('lets us hang up all calls when the gateway closes', async () => {
    const phone = await network.phone();
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(phone.sipUri) });
    await phone.until('confirmed');
    await network.gateway.close();
    expect(await dialed.over()).toEqual({ type: 'leg.ended', by: 'local', hangupCause: 'SYSTEM_SHUTDOWN' });
    await phone.until('bye');
  });
});

describe('the sign of a trunk', () => {
  async function signsOf(trunk: ReturnType<typeof trunkOf>) {
    const signs: TrunkSign[] = [];
    const dialed = dialLeg(network.gateway, { trunk, onSign: (sign) => signs.push(sign) });
    await dialed.over();
    return signs;
  }

  test('is an answer when the carrier refuses the call, with any status', async () => {
    const carrier = await network.carrier();
    carrier.failures.set(CUSTOMER_NUMBER, 503);
    expect(await signsOf(trunkOf(carrier.sipUri))).toEqual([{ type: 'answered' }]);
  });

  test('is an answer once for a call that is challenged, rings and is answered', async () => {
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

  test('is a transport error when the connection is refused', async () => {
    const carrier = await network.carrier();
    const trunk = trunkOf(carrier.sipUri, { transport: 'tcp' });
    await carrier.stop();
    expect(await signsOf(trunk)).toEqual([{ type: 'unanswered', reason: 'transport_error' }]);
  });

  test.skipIf(differs('timers'))(
    'is no response when the INVITE times out, also after the leg was given up',
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

describe('probing a trunk', () => {
  const signal = new AbortController().signal;

  test.each(['udp', 'tcp'] as const)('that answers OPTIONS over %s finds it reachable', async (transport) => {
    const carrier = await network.carrier();
    const probe = await network.gateway.probe(trunkOf(carrier.sipUri, { transport }), signal);
    expect(probe).toMatchObject({ reachable: true, sipStatus: 200 });
  });

  test('that answers with an error finds it reachable all the same', async () => {
    const carrier = await network.carrier();
    carrier.failures.set('', 503);
    const probe = await network.gateway.probe(trunkOf(carrier.sipUri), signal);
    expect(probe.reachable).toBe(true);
  });

  test('that is gone finds it unreachable', async () => {
    const carrier = await network.carrier();
    const trunk = trunkOf(carrier.sipUri, { transport: 'tcp' });
    await carrier.stop();
    const probe = await network.gateway.probe(trunk, signal);
    expect(probe).toMatchObject({ reachable: false, silence: 'transport_error' });
  });

  test('ends when its signal is aborted', async () => {
    const carrier = await network.carrier();
    carrier.isSilent = true;
    const controller = new AbortController();
    const probing = network.gateway.probe(trunkOf(carrier.sipUri), controller.signal);
    await carrier.log.until('request', ({ method }) => method === 'OPTIONS');
    controller.abort();
    expect(await probing).toMatchObject({ reachable: false, sipStatus: null });
  });
});

test('a call to us, which nobody serves yet, is refused politely', async () => {
  const phone = await network.phone();
  const { host, port } = network.sipAddress;
  const status = await phone.sendOutside('INVITE', `sip:+918000000001@${host}:${port}`);
  expect(status).toBe(480);
  expect(await phone.sendOutside('OPTIONS', `sip:${host}:${port}`)).toBe(200);
});

test('of many calls at once, each ends exactly once, and nothing is left behind', async () => {
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

describe.skipIf(differs('timers'))('a network that loses messages', () => {
  let quick: TestNetwork;

  beforeEach(async () => {
    quick = await TestNetwork.start({}, { t1Ms: 40 });
  });

  afterEach(() => quick.stop());

  test('still rings the phone once when the INVITE was lost', async () => {
    const phone = await quick.phone();
    const carrier = await quick.carrier({ routes: new Map([[CUSTOMER_NUMBER, phone.address]]) });
    carrier.isSilent = true;
    const dialed = dialLeg(quick.gateway, { trunk: trunkOf(carrier.sipUri) });
    await carrier.log.until('request');
    carrier.isSilent = false;
    await dialed.log.until('leg.answered');
    expect(phone.counts.invites).toBe(1);
  });

  test('still acknowledges the answer when the ACK was lost', async () => {
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

  test('says 408 for a trunk that never says anything', async () => {
    const carrier = await quick.carrier();
    carrier.isSilent = true;
    const dialed = dialLeg(quick.gateway, { trunk: trunkOf(carrier.sipUri) });
    expect(await dialed.over()).toMatchObject({
      type: 'leg.refused',
      sipStatus: 408,
      hangupCause: 'RECOVERY_ON_TIMER_EXPIRE',
    });
  });

  test.each(['udp', 'tcp'] as const)('says 503 for a trunk whose %s port is closed', async (transport) => {
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
