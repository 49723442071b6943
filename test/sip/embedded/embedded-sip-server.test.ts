import { once } from 'node:events';
import Srf from 'drachtio-srf';
import { afterEach, describe, expect, it } from 'vitest';
import { type EmbeddedSipServer, startEmbeddedSipServer } from '../../../sip/embedded/embedded-sip-server.ts';
import { header, headers, parseNameAddr, parseVia, tagOf } from '../../../sip/message/index.ts';
import { SDP, SipPeer } from './sip-peer.ts';

const FAST = { t1Ms: 20, t2Ms: 80, t4Ms: 100, timerDMs: 200 };

describe('a call that we place', () => {
  it('rings, is answered, acknowledged and hung up by us', async () => {
    const { srf } = await startServer();
    const peer = await openPeer();
    const provisional: number[] = [];
    const calling = srf.createUAC(
      peer.uri,
      { localSdp: SDP, headers: { 'x-tandem-call-id': 'c1' }, callingNumber: '+15550100' } as never,
      { cbProvisional: (response) => provisional.push(response.status) },
    );
    const invite = await peer.request('INVITE');
    expect(header(invite, 'max-forwards')).toBe('70');
    expect(header(invite, 'content-type')).toBe('application/sdp');
    expect(invite.headers.map(({ name }) => name)).toContain('X-Tandem-Call-Id');
    expect(invite.body.toString()).toBe(SDP);
    expect(parseNameAddr(header(invite, 'contact') ?? '').uri).toMatch(/^sip:\+15550100@127\.0\.0\.1:\d+$/);
    peer.reply(invite, 100, { contact: null });
    peer.reply(invite, 180);
    peer.reply(invite, 200, { body: SDP });
    const ack = await peer.request('ACK');
    const dialog = await calling;
    expect(provisional).toEqual([180]);
    expect(dialog.remote.sdp).toBe(SDP);
    expect(ack.uri).toBe(peer.uri);
    expect(header(ack, 'cseq')).toBe(`${Number.parseInt(header(invite, 'cseq') ?? '', 10)} ACK`);
    expect(parseVia(header(ack, 'via') ?? '').params.get('branch')).not.toBe(branchOf(invite));

    const ending = dialog.destroy();
    const bye = await peer.request('BYE');
    expect(tagOf(header(bye, 'to'))).toBe('peer-tag');
    peer.reply(bye, 200, { contact: null });
    await ending;
  });
});

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

async function startServer(): Promise<{ server: EmbeddedSipServer; srf: Srf }> {
  const server = await startEmbeddedSipServer({
    sipHost: '127.0.0.1',
    sipPort: 0,
    transports: ['udp', 'tcp'],
    secret: 'correct horse',
    signal: new AbortController().signal,
    timers: FAST,
  });
  opened.push(server);
  const srf = await connect(server);
  return { server, srf };
}

async function connect(server: EmbeddedSipServer): Promise<Srf> {
  const srf = new Srf();
  srf.on('error', () => {});
  srf.connect({ host: server.controlHost, port: server.controlPort, secret: 'correct horse' });
  await once(srf as never, 'connect');
  opened.push({ close: async () => srf.disconnect() });
  return srf;
}

async function openPeer(transport: 'udp' | 'tcp' = 'udp'): Promise<SipPeer> {
  const peer = await SipPeer[transport]();
  opened.push({ close: () => peer[Symbol.asyncDispose]() });
  return peer;
}

function branchOf(message: Parameters<typeof header>[0]): string | null | undefined {
  return parseVia(header(message, 'via') ?? '').params.get('branch');
}
void headers;
