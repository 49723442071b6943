import { afterEach, expect, it } from 'vitest';
import { header } from '../../sip/message/index.ts';
import { selfSignedCertificate } from '../callbacks/certificate.ts';
import { dialLeg, trunkOf } from './dialing.ts';
import { differs } from './drachtio-endpoint.ts';
import { SDP, SipPeer } from './embedded/sip-peer.ts';
import { TestNetwork } from './test-network.ts';

const NEXT_HOP = { address: '127.0.0.1', port: null, transport: 'tls' } as const;

/** Port 40000 belongs to the platform. */
const ANSWER = SDP.replace('m=audio 40000', 'm=audio 41000');
const CARRIER = selfSignedCertificate({ dns: ['carrier.example'] });

let network: TestNetwork;
afterEach(() => network?.stop());

async function start(ca = CARRIER.cert): Promise<SipPeer> {
  network = await TestNetwork.start({}, {}, { port: 0, certificate: null, ca, demandsClientCertificate: false });
  const peer = await SipPeer.tls(CARRIER);
  network.cleanUp(() => peer.close());
  return peer;
}

it.skipIf(differs('certificates')).each(['sip', 'sips'])('a TLS trunk with a %s URI carries a call', async (scheme) => {
  const peer = await start();
  const trunk = trunkOf(`${scheme}:carrier.example:${peer.port}`, { transport: 'tls', nextHop: NEXT_HOP });
  const { leg, log, over } = dialLeg(network.gateway, { trunk });
  const invite = await peer.request('INVITE');
  expect(invite.uri).toContain(`${scheme}:+919876543210@carrier.example`);
  expect(header(invite, 'contact')).toContain(`<${scheme}:`);
  peer.reply(invite, 200, { body: ANSWER, contact: `<${scheme}:peer@127.0.0.1:${peer.port};transport=tls>` });
  await peer.request('ACK');
  await log.untilAny((event) => event.type === 'leg.answered', 'answer');
  leg.hangup('NORMAL_CLEARING');
  peer.reply(await peer.request('BYE'), 200);
  await over();
});

it.skipIf(differs('certificates'))('a probe reports a carrier without a valid certificate as unreachable', async () => {
  const peer = await start(selfSignedCertificate({ dns: ['carrier.example'] }).cert);
  const trunk = trunkOf(`sip:carrier.example:${peer.port}`, { transport: 'tls', nextHop: NEXT_HOP });
  const probe = await network.gateway.probe(trunk, new AbortController().signal);
  expect(probe).toMatchObject({ reachable: false, silence: 'transport_error' });
  expect(peer.inbox).toEqual([]);
});

const CHALLENGE: [string, string][] = [['WWW-Authenticate', 'Digest realm="carrier", nonce="n1", qop="auth"']];
const ACCOUNT = { username: 'tandem', password: 's3cret', transport: 'tls', nextHop: NEXT_HOP } as const;

it.skipIf(differs('certificates'))('a call over TLS responds to a challenge', async () => {
  const peer = await start();
  const dialed = dialLeg(network.gateway, { trunk: trunkOf(`sip:carrier.example:${peer.port}`, ACCOUNT) });
  peer.reply(await peer.request('INVITE'), 401, { headers: CHALLENGE });
  await peer.request('ACK');
  const again = await peer.request('INVITE');
  expect(header(again, 'authorization')).toContain('nonce="n1"');
  peer.reply(again, 486);
  expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 486 });
});

it.skipIf(differs('certificates'))('a registration over TLS authenticates', async () => {
  const peer = await start();
  const registration = network.gateway.openRegistration(trunkOf(`sip:carrier.example:${peer.port}`, ACCOUNT));
  const signal = new AbortController().signal;
  const registering = registration.register({ expiresS: 600, nextHop: NEXT_HOP, signal });
  peer.reply(await peer.request('REGISTER'), 401, { headers: CHALLENGE });
  const again = await peer.request('REGISTER');
  expect(header(again, 'authorization')).toContain('nonce="n1"');
  expect(header(again, 'contact')).toContain('transport=tls');
  peer.reply(again, 200, { headers: [['Expires', '120']] });
  expect(await registering).toEqual({ type: 'registered', expiresS: 120 });
});
