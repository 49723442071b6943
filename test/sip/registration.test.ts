import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { EmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';
import { header, parseNameAddr, parseUri } from '../../sip/message/index.ts';
import { Registration } from '../../sip/registration.ts';
import type { SrfResponse, SrfSentRequest } from '../../sip/srf-types.ts';
import type { CarrierAuth } from '../softphone/digest-challenger.ts';
import type { LoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { dialLeg, trunkOf } from './dialing.ts';
import { differs } from './drachtio-endpoint.ts';
import { SipPeer } from './embedded/sip-peer.ts';
import { CUSTOMER_NUMBER, startTestSipServer, TestNetwork } from './test-network.ts';

const ACCOUNT = { username: 'tandem', password: 's3cret' };
const signal = new AbortController().signal;

let server: EmbeddedSipServer;
let network: TestNetwork;
beforeAll(async () => {
  server = await startTestSipServer();
});
afterAll(() => server.close());
beforeEach(async () => {
  network = await TestNetwork.on(server);
});
afterEach(() => network.stop());

function registers(carrier: LoopbackCarrier) {
  return carrier.log.all.flatMap((event) =>
    event.type === 'request' && event.method === 'REGISTER' ? [event.message] : [],
  );
}

function challenge(changes: Partial<CarrierAuth> = {}): CarrierAuth {
  return { ...ACCOUNT, realm: 'carrier', challenge: 401, ...changes };
}

describe('registration', () => {
  test.each(['udp', 'tcp'] as const)('binds the account to a reachable address over %s', async (transport) => {
    const carrier = await network.carrier({ registrar: { expiresS: 300 } });
    const registration = network.gateway.openRegistration(trunkOf(carrier.sipUri, { ...ACCOUNT, transport }));
    expect(await registration.register({ expiresS: 600, signal })).toEqual({ type: 'registered', expiresS: 300 });
    const { contact } = carrier.bindings.get('tandem')!;
    const uri = parseUri(parseNameAddr(contact).uri);
    expect(uri).toMatchObject({ user: 'tandem', ...network.sipAddress });
    expect(uri.params.get('transport')).toBe(transport === 'tcp' ? 'tcp' : undefined);
  });

  test('refreshes and ends with the same Call-ID and increasing CSeq', async () => {
    const carrier = await network.carrier({ registrar: {} });
    const registration = network.gateway.openRegistration(trunkOf(carrier.sipUri, ACCOUNT));
    await registration.register({ expiresS: 600, signal });
    await registration.register({ expiresS: 600, signal });
    expect(await registration.register({ expiresS: 0, signal })).toEqual({ type: 'registered', expiresS: 0 });
    expect(carrier.bindings.size).toBe(0);
    const sent = registers(carrier);
    expect(new Set(sent.map((request) => header(request, 'Call-ID'))).size).toBe(1);
    expect(sent.map((request) => header(request, 'CSeq'))).toEqual(['1 REGISTER', '2 REGISTER', '3 REGISTER']);
  });

  test.each(['MD5', 'SHA-256'] as const)('responds to a challenge with %s and reuses its nonce', async (algorithm) => {
    const carrier = await network.carrier({ registrar: {}, auth: challenge({ algorithm }) });
    const registration = network.gateway.openRegistration(trunkOf(carrier.sipUri, ACCOUNT));
    for (let refresh = 0; refresh < 3; refresh += 1) {
      expect(await registration.register({ expiresS: 600, signal })).toMatchObject({ type: 'registered' });
    }
    expect(registers(carrier)).toHaveLength(4);
  });

  test('responds to a stale nonce with the new one', async () => {
    const carrier = await network.carrier({ registrar: {}, auth: challenge({ nonceUses: 1 }) });
    const registration = network.gateway.openRegistration(trunkOf(carrier.sipUri, ACCOUNT));
    for (let refresh = 0; refresh < 2; refresh += 1) {
      expect(await registration.register({ expiresS: 600, signal })).toMatchObject({ type: 'registered' });
    }
    expect(registers(carrier)).toHaveLength(4);
  });

  test('authenticates to a proxy and the registrar behind it in one exchange', async () => {
    const auth = [challenge({ challenge: 407, realm: 'proxy' }), challenge({ algorithm: 'SHA-256' })];
    const carrier = await network.carrier({ registrar: {}, auth });
    const registration = network.gateway.openRegistration(trunkOf(carrier.sipUri, ACCOUNT));
    expect(await registration.register({ expiresS: 600, signal })).toMatchObject({ type: 'registered' });
    expect(registers(carrier)).toHaveLength(3);
  });

  test('adopts the interval that the registrar requires', async () => {
    const carrier = await network.carrier({ registrar: { minExpiresS: 1800 }, auth: challenge() });
    const registration = network.gateway.openRegistration(trunkOf(carrier.sipUri, ACCOUNT));
    expect(await registration.register({ expiresS: 600, signal })).toEqual({ type: 'registered', expiresS: 1800 });
  });

  test('finds its own contact among others', async () => {
    const carrier = await network.carrier({ registrar: { expiresS: 90, hasOthers: true } });
    const registration = network.gateway.openRegistration(trunkOf(carrier.sipUri, ACCOUNT));
    expect(await registration.register({ expiresS: 600, signal })).toEqual({ type: 'registered', expiresS: 90 });
  });

  test('fails with a wrong password after sending it once', async () => {
    const carrier = await network.carrier({ registrar: {}, auth: challenge() });
    const trunk = trunkOf(carrier.sipUri, { ...ACCOUNT, password: 'wrong' });
    const outcome = await network.gateway.openRegistration(trunk).register({ expiresS: 600, signal });
    expect(outcome).toMatchObject({ type: 'refused', sipStatus: 401, retryAfterS: null });
    expect(registers(carrier)).toHaveLength(2);
  });

  test('reports the Retry-After of the carrier', async () => {
    const carrier = await network.carrier();
    carrier.refusesRegister = { status: 503, headers: [['Retry-After', '120 (maintenance)']] };
    const outcome = await network.gateway
      .openRegistration(trunkOf(carrier.sipUri, ACCOUNT))
      .register({ expiresS: 600, signal });
    expect(outcome).toEqual({ type: 'refused', sipStatus: 503, reason: 'From the carrier', retryAfterS: 120 });
  });

  test('stops after a few requests at a registrar that keeps challenging', async () => {
    const carrier = await network.carrier();
    const nonce = 'Digest realm="carrier", nonce="1", stale=true';
    carrier.refusesRegister = { status: 401, headers: [['WWW-Authenticate', nonce]] };
    const outcome = await network.gateway
      .openRegistration(trunkOf(carrier.sipUri, ACCOUNT))
      .register({ expiresS: 600, signal });
    expect(outcome).toMatchObject({ type: 'refused', sipStatus: 401 });
    expect(registers(carrier).length).toBeLessThanOrEqual(6);
  });

  test('reports a closed port, a silent carrier and an abort', async () => {
    const carrier = await network.carrier();
    const trunk = trunkOf(carrier.sipUri, { ...ACCOUNT, transport: 'tcp' });
    carrier.isSilent = true;
    const controller = new AbortController();
    const waiting = network.gateway.openRegistration(trunk).register({ expiresS: 600, signal: controller.signal });
    await carrier.log.until('request', ({ method }) => method === 'REGISTER');
    controller.abort();
    expect(await waiting).toEqual({ type: 'unanswered', reason: 'no_response' });
    await carrier.stop();
    const gone = await network.gateway.openRegistration(trunk).register({ expiresS: 600, signal });
    expect(gone).toEqual({ type: 'unanswered', reason: 'transport_error' });
    const nonsense = network.gateway.openRegistration(trunkOf('nonsense', ACCOUNT));
    expect(await nonsense.register({ expiresS: 600, signal })).toMatchObject({ type: 'unanswered' });
  });

  test.skipIf(differs('connections'))('reports the loss of its connection once, while the carrier has it', async () => {
    const peer = await SipPeer.tcp();
    network.cleanUp(() => peer.close());
    const lost = Promise.withResolvers<void>();
    const onLost = vi.fn(() => lost.resolve());
    const trunk = trunkOf(`sip:127.0.0.1:${peer.port}`, { ...ACCOUNT, transport: 'tcp' });
    const registration = network.gateway.openRegistration(trunk, onLost);
    const register = async (expiresS: number) => {
      const registering = registration.register({ expiresS, signal });
      peer.reply(await peer.request('REGISTER'), 200);
      await registering;
    };
    const disconnect = async () => {
      peer.dropStreams();
      // A request over a new connection: the server has noticed the loss of the old one.
      const probing = network.gateway.probe(trunk, signal);
      peer.reply(await peer.request('OPTIONS'), 200);
      await probing;
    };
    await register(600);
    await disconnect();
    await lost.promise;
    await disconnect();
    await register(600);
    await register(0);
    await disconnect();
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  test('reports the loss of its connection with the 200', async () => {
    const registered = new Map<string, Registration>();
    const onLost = vi.fn();
    const get = () => undefined;
    const response = { status: 200, source_address: '192.0.2.7', source_port: 5060, get } as unknown as SrfResponse;
    const request = {
      get,
      on(_: 'response', respond: (response: SrfResponse) => void) {
        respond(response);
        for (const registration of registered.values()) registration.lost();
      },
    } as unknown as SrfSentRequest;
    const registration = new Registration({
      ...{ trunk: trunkOf('sip:192.0.2.7', ACCOUNT), timeoutMs: 1000, onLost, registered },
      connection: () => ({ request: (_uri, _options, onOutcome) => onOutcome({ kind: 'sent', request }) }),
    });
    expect(await registration.register({ expiresS: 600, signal })).toEqual({ type: 'registered', expiresS: 600 });
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  test('escapes the user name in the address', async () => {
    const username = 'me;x=1@elsewhere>';
    const carrier = await network.carrier({ registrar: {}, auth: challenge({ username }) });
    const registration = network.gateway.openRegistration(trunkOf(carrier.sipUri, { ...ACCOUNT, username }));
    expect(await registration.register({ expiresS: 600, signal })).toMatchObject({ type: 'registered' });
    expect([...carrier.bindings.keys()]).toEqual([username]);
  });
});

describe('challenges of a call', () => {
  test.each([
    { of: 'a proxy and the carrier behind it', auth: [challenge({ challenge: 407, realm: 'p' }), challenge()] },
    {
      of: 'a proxy and the carrier with SHA-256',
      auth: [challenge({ challenge: 407, realm: 'p', algorithm: 'SHA-256' }), challenge({ algorithm: 'SHA-256' })],
    },
    {
      of: 'both, also inside the dialog',
      auth: [challenge({ challenge: 407, realm: 'p', inDialog: true }), challenge({ nonceUses: 1, inDialog: true })],
    },
  ])('succeed with $of', async ({ auth }) => {
    const phone = await network.phone();
    const carrier = await network.carrier({
      auth,
      recordRoute: true,
      routes: new Map([[CUSTOMER_NUMBER, phone.address]]),
    });
    const dialed = dialLeg(network.gateway, { trunk: trunkOf(carrier.sipUri, ACCOUNT) });
    await dialed.log.until('leg.answered');
    dialed.leg.hangup('NORMAL_CLEARING');
    await phone.until('bye');
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'local' });
  });
});
