import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import type { TlsSettings } from '../../../sip/embedded/transport/tls-security.ts';
import { header, headers, parseVia } from '../../../sip/message/index.ts';
import { selfSignedCertificate } from '../../callbacks/certificate.ts';
import { untilTruthy } from '../../eventually.ts';
import { Harness, untilRouted } from './server-harness.ts';
import { SDP, SipPeer } from './sip-peer.ts';

const harness = new Harness();
afterEach(() => harness.closeAll());

const CARRIER = selfSignedCertificate({ dns: ['carrier.example'] });
const OURS = selfSignedCertificate({ dns: ['tandem.example'] });

function settings(changes: Partial<TlsSettings> = {}): TlsSettings {
  return { port: 0, certificate: null, ca: CARRIER.cert, demandsClientCertificate: false, ...changes };
}

async function carrier(options: tls.TlsOptions = CARRIER): Promise<SipPeer> {
  const peer = await SipPeer.tls(options);
  harness.onClose(() => peer.close());
  return peer;
}

/** A trunk URI with a verified name and a known address. */
function uriOf(peer: SipPeer, name = 'carrier.example', scheme = 'sip'): string {
  return `${scheme}:+911234@${name}:${peer.port};transport=${scheme === 'sips' ? 'tcp' : 'tls'};maddr=127.0.0.1`;
}

describe('TLS call', () => {
  it('uses one connection, even for a BYE to the address in the Contact', async () => {
    const { srf, server } = await harness.start({ tls: settings() });
    const peer = await carrier();
    const calling = srf.createUAC(uriOf(peer), { localSdp: SDP });
    const invite = await peer.request('INVITE');
    expect(parseVia(header(invite, 'via') ?? '')).toMatchObject({ transport: 'TLS', port: 5061 });
    expect(header(invite, 'contact')).toContain(':5061;transport=tls');
    // A private address, as sent by carriers behind NAT.
    peer.reply(invite, 200, { body: SDP, contact: '<sip:peer@192.0.2.1:5061;transport=tls>' });
    await peer.request('ACK');
    const dialog = await calling;
    void dialog.destroy();
    peer.reply(await peer.request('BYE'), 200);
    expect(server.tlsPort).toBeNull();
    expect(await connectionsOf(server)).toBe(1);
  });

  it('accepts requests of the carrier on that connection', async () => {
    const { srf } = await harness.start({ tls: settings() });
    const peer = await carrier();
    const calling = srf.createUAC(uriOf(peer), { localSdp: SDP });
    const invite = await peer.request('INVITE');
    const answer = peer.reply(invite, 200, { body: SDP });
    await peer.request('ACK');
    const dialog = await calling;
    const ended = new Promise<void>((resolve) => dialog.once('destroy', () => resolve()));
    peer.send(peer.withinAnswered(invite, answer, 'BYE', 1));
    await peer.response(200);
    await ended;
  });

  it('with a sips URI has a sips Contact', async () => {
    const { srf } = await harness.start({ tls: settings() });
    const peer = await carrier();
    const calling = srf.createUAC(uriOf(peer, 'carrier.example', 'sips'), { localSdp: SDP });
    const invite = await peer.request('INVITE');
    expect(header(invite, 'contact')).toMatch(/^<sips:.*:5061;transport=tcp>$/);
    peer.reply(invite, 486);
    await expect(calling).rejects.toMatchObject({ status: 486 });
  });

  it('opens another connection after the carrier closed the first', async () => {
    const { srf, server } = await harness.start({ tls: settings() });
    const peer = await carrier();
    for (const status of [486, 404]) {
      const calling = srf.createUAC(uriOf(peer), { localSdp: SDP });
      peer.reply(await peer.request('INVITE'), status);
      await expect(calling).rejects.toMatchObject({ status });
      peer.dropStreams();
      await untilTruthy(async () => (await connectionsOf(server)) === 0);
    }
  });

  it('ends with 503 if the carrier disconnects before it answers', async () => {
    const { srf } = await harness.start({ tls: settings() });
    const peer = await carrier();
    const calling = srf.createUAC(uriOf(peer), { localSdp: SDP });
    await peer.request('INVITE');
    peer.dropStreams();
    await expect(calling).rejects.toMatchObject({ status: 503 });
  });

  it('never reuses a connection opened for another name', async () => {
    const both = selfSignedCertificate({ dns: ['carrier.example', 'second.example'] });
    const { srf, server } = await harness.start({ tls: settings({ ca: both.cert }) });
    const peer = await carrier(both);
    for (const name of ['carrier.example', 'second.example', 'carrier.example']) {
      const calling = srf.createUAC(uriOf(peer, name), { localSdp: SDP });
      peer.reply(await peer.request('INVITE'), 486);
      await expect(calling).rejects.toMatchObject({ status: 486 });
    }
    expect(await connectionsOf(server)).toBe(2);
  });
});

describe('TLS carrier', () => {
  const dayAgo = Date.now() - 86_400_000;
  const others = selfSignedCertificate({ dns: ['evil.example'] });
  const wildcard = selfSignedCertificate({ dns: ['*.example'] });
  const expired = selfSignedCertificate({ dns: ['carrier.example'], expiresAtMs: dayAgo });
  const unknown = selfSignedCertificate({ dns: ['carrier.example'] });
  it.each([
    ['for another name', others, others.cert, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['with a wildcard', wildcard, wildcard.cert, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['past its expiry', expired, expired.cert, 'CERT_HAS_EXPIRED'],
    ['from an unknown authority', unknown, CARRIER.cert, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['from an authority that the system does not know', unknown, null, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ])('with a certificate %s receives nothing, and the call ends with 503', async (_what, certificate, ca, code) => {
    const untrusted: [string, string][] = [];
    const { srf } = await harness.start({
      tls: settings({ ca }),
      onUntrusted: (name, reason) => untrusted.push([name, reason]),
    });
    const peer = await carrier(certificate);
    await expect(srf.createUAC(uriOf(peer), { localSdp: SDP })).rejects.toMatchObject({ status: 503 });
    await untilTruthy(() => untrusted.length > 0);
    expect(untrusted).toEqual([['carrier.example', code]]);
    expect(peer.inbox).toEqual([]);
  });

  it('without TLS receives a handshake only', async () => {
    const { srf } = await harness.start({ tls: settings() });
    const chunks: Buffer[] = [];
    const server = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        chunks.push(chunk);
        socket.end('SIP/2.0 400 Bad Request\r\n\r\n');
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    harness.onClose(async () => void server.close());
    const { port } = server.address() as net.AddressInfo;
    const uri = `sip:a@carrier.example:${port};transport=tls;maddr=127.0.0.1`;
    await expect(srf.createUAC(uri, { localSdp: SDP })).rejects.toMatchObject({ status: 503 });
    expect(Buffer.concat(chunks).includes('INVITE')).toBe(false);
  });

  it('receives the client certificate on request', async () => {
    const { srf } = await harness.start({ tls: settings({ certificate: OURS }) });
    const peer = await carrier({ ...CARRIER, requestCert: true, rejectUnauthorized: true, ca: OURS.cert });
    const calling = srf.createUAC(uriOf(peer), { localSdp: SDP });
    peer.reply(await peer.request('INVITE'), 486);
    await expect(calling).rejects.toMatchObject({ status: 486 });
  });

  it('receives no call if it requests a missing client certificate', async () => {
    const { srf } = await harness.start({ tls: settings() });
    const peer = await carrier({ ...CARRIER, requestCert: true, rejectUnauthorized: true, ca: OURS.cert });
    await expect(srf.createUAC(uriOf(peer), { localSdp: SDP })).rejects.toMatchObject({ status: 503 });
    expect(peer.inbox).toEqual([]);
  });
});

describe('TLS listener', () => {
  it('accepts requests and responds on their connection', async () => {
    const { srf, server } = await harness.start({ tls: settings({ certificate: OURS }) });
    srf.invite((_request, response) => response.send(486));
    await untilRouted(server, 'invite');
    const peer = await carrier();
    peer.send(peer.make('INVITE', { callId: 'tls-in', port: server.tlsPort ?? 0 }), server.tlsPort ?? 0);
    const response = await peer.response(486);
    expect(headers(response, 'via')[0]).toContain('SIP/2.0/TLS');
  });

  it('hangs up an answered call on its connection', async () => {
    const { srf, server } = await harness.start({ tls: settings({ certificate: OURS }) });
    const answered = new Promise<{ destroy(): Promise<unknown> }>((resolve) => {
      srf.invite((request, response) => void srf.createUAS(request, response, { localSdp: SDP }).then(resolve));
    });
    await untilRouted(server, 'invite');
    const peer = await carrier();
    const port = server.tlsPort ?? 0;
    const invite = peer.make('INVITE', { callId: 'tls-in', port, body: SDP });
    peer.send(invite, port);
    const response = await peer.response(200);
    expect(header(response, 'contact')).toContain(`:${port};transport=tls`);
    peer.send(peer.within(invite, response, 'ACK', 1), port);
    void (await answered).destroy();
    peer.reply(await peer.request('BYE'), 200);
  });

  it('drops connections without TLS', async () => {
    const { server } = await harness.start({ tls: settings({ certificate: OURS }) });
    const peer = await harness.peer('tcp');
    peer.sendBytes('OPTIONS sip:a@b SIP/2.0\r\n\r\n', server.tlsPort ?? 0);
    await untilTruthy(async () => (await tlsCounts(server)).refused === 1);
    expect(await connectionsOf(server)).toBe(0);
  });

  it('requires a client certificate of its authorities if configured', async () => {
    const { server } = await harness.start({ tls: settings({ certificate: OURS, demandsClientCertificate: true }) });
    const port = server.tlsPort ?? 0;
    const stranger = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    stranger.on('error', () => {});
    await new Promise((resolve) => stranger.resume().once('close', resolve));
    const certified = await carrier();
    certified.send(certified.make('OPTIONS', { callId: 'certified', port }), port);
    await certified.response(503);
  });

  it('stays closed without a certificate', async () => {
    const { server } = await harness.start({ tls: settings() });
    expect(server.tlsPort).toBeNull();
  });
});

interface TlsCounts {
  connections: number;
  refused: number;
}

async function tlsCounts(server: { dump(): Promise<unknown> }): Promise<TlsCounts> {
  const { network } = (await server.dump()) as { network: { tls: TlsCounts } };
  return network.tls;
}

async function connectionsOf(server: { dump(): Promise<unknown> }): Promise<number> {
  return (await tlsCounts(server)).connections;
}
