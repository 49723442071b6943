import { afterEach, describe, expect, it } from 'vitest';
import { header, serializeMessage } from '../../../sip/message/index.ts';
import * as fc from '../../properties.ts';
import { Harness, untilCounts, untilRouted } from './server-harness.ts';
import { SDP, type SipPeer } from './sip-peer.ts';

const harness = new Harness();
afterEach(() => harness.closeAll());

/** After RFC 4475: the status of the response; the application never sees the request. */
const TORTURE: [what: string, status: number, change: (text: string) => string][] = [
  ['another SIP version (§3.1.2.16)', 505, (text) => text.replace('SIP/2.0\r\n', 'SIP/7.0\r\n')],
  [
    'white space in the request URI (§3.1.2.9)',
    400,
    (text) => text.replace('sip:tandem@127.0.0.1', 'sip:tandem@127.0.0.1; lr'),
  ],
  ['brackets around the request URI (§3.1.2.7)', 400, (text) => text.replace(/ (sip:\S*) SIP/, ' <$1> SIP')],
  ['an unknown scheme (§3.3.2)', 416, (text) => text.replace('sip:tandem@', 'nobodyKnowsThisScheme:tandem@')],
  ['a method that CSeq does not name (§3.1.2.17)', 400, (text) => text.replace('1 INVITE', '1 OPTIONS')],
  ['a CSeq of 2^32 (§3.1.2.4)', 400, (text) => text.replace('CSeq: 1 ', 'CSeq: 36893488147419103232 ')],
  ['Max-Forwards of 300 (§3.1.2.4)', 400, (text) => text.replace('Max-Forwards: 70', 'Max-Forwards: 300')],
  [
    'a body shorter than Content-Length (§3.1.2.2)',
    400,
    (text) => text.replace(/Content-Length: \d+/, 'Content-Length: 9999'),
  ],
  ['a negative Content-Length (§3.1.2.3)', 400, (text) => text.replace(/Content-Length: \d+/, 'Content-Length: -999')],
  ['two Content-Lengths (§3.3.9)', 400, (text) => text.replace('Content-Length', 'l: 5\r\nContent-Length')],
  ['an unterminated quoted string in To (§3.1.2.6)', 400, (text) => text.replace('To: <', 'To: "Mr. J. User <')],
  ['no Call-ID (§3.3.1)', 400, (text) => text.replace(/Call-ID: .*\r\n/, '')],
  ['two From headers (§3.3.8)', 400, (text) => text.replace('From: ', 'From: <sip:x@x>;tag=2\r\nf: ')],
  ['an unknown extension (§3.2.1)', 420, (text) => text.replace('From: ', 'Require: nothingSupportsThis\r\nFrom: ')],
  ['an invalid Contact', 400, (text) => text.replace(/Contact: .*\r\n/, 'Contact: <>\r\n')],
  ['no Contact at all', 400, (text) => text.replace(/Contact: .*\r\n/, '')],
  ['a header without a colon', 400, (text) => text.replace('From: ', 'This is no header\r\nFrom: ')],
];

describe('a malformed INVITE', () => {
  it.each(TORTURE)('with %s gets %i', async (_what, status, change) => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    let reached = 0;
    srf.invite(() => reached++);
    await untilRouted(server, 'invite');
    peer.sendBytes(change(inviteText(peer, server.sipPort)), server.sipPort);
    expect(header(await peer.response(status), 'via')).toContain('branch=z9hG4bK-torture');
    expect(reached).toBe(0);
  });
});

describe('an unusual valid INVITE', () => {
  const odd: [what: string, change: (text: string) => string][] = [
    [
      'compact forms and folded lines (§3.1.1.1)',
      (text) =>
        text
          .replace('Via:', 'v  :')
          .replace('From: <', 'f:\r\n  "An \\"odd\\" name"\r\n\t <')
          .replace('To:', 'TO :')
          .replace('Call-ID', 'i'),
    ],
    ['a tel URI', (text) => text.replace(/INVITE \S+/, 'INVITE tel:+15550100')],
    [
      'escapes in the user part (§3.1.1.4)',
      (text) => text.replace('sip:tandem@', 'sip:sip%3Auser%40example.com;x=%00@'),
    ],
    [
      'a branch of nothing but the cookie (§3.1.1.9... §3.3.15)',
      (text) => text.replace('branch=z9hG4bK-torture', 'branch=z9hG4bK'),
    ],
    ['no branch at all, as in RFC 2543 (§3.4.1)', (text) => text.replace(';branch=z9hG4bK-torture', '')],
    ['a caller name in Latin-1', (text) => text.replace('From: <', 'From: "José" <')],
    ['bytes after its body', (text) => `${text}INVITE sip:x@y SIP/2.0\r\n\r\n`],
  ];

  it.each(odd)('with %s reaches the application', async (_what, change) => {
    const { srf, server } = await harness.start();
    const peer = await harness.peer();
    srf.invite((_request, response) => response.send(486));
    await untilRouted(server, 'invite');
    peer.sendBytes(Buffer.from(change(inviteText(peer, server.sipPort)), 'latin1'), server.sipPort);
    await peer.response(486);
  });
});

describe('noise', () => {
  it.each(['udp', 'tcp'] as const)('over %s leaves the server unchanged', async (transport) => {
    const { server } = await harness.start();
    const noise = await harness.peer(transport);
    noise.sendBytes(Buffer.from([0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42]), server.sipPort);
    for (const text of [
      '\r\n\r\n',
      '\0\0\0\0',
      'SIP/2.0 200 OK\r\n\r\n',
      'SIP/2.0 4294967301 x\r\n\r\n',
      'INVITE\r\n\r\n',
    ]) {
      noise.sendBytes(text, server.sipPort);
    }
    for (const bytes of fc.sample(fc.uint8Array({ minLength: 1, maxLength: 1400 }), 200)) {
      noise.sendBytes(Buffer.from(bytes), server.sipPort);
    }
    const peer = await harness.peer();
    peer.send(peer.make('OPTIONS', { callId: 'after', port: server.sipPort }), server.sipPort);
    await peer.response(503);
    expect(await server.dump()).toMatchObject({ core: { dialogs: 0 } });
  });

  it('built from SIP fragments leaves the server unchanged', async () => {
    const { server, srf } = await harness.start();
    srf.invite((_request, response) => response.send(486));
    await untilRouted(server, 'invite');
    const peer = await harness.peer();
    const whole = inviteText(peer, server.sipPort);
    const cut = fc.tuple(fc.nat(whole.length), fc.nat(20), fc.string({ maxLength: 8 }));
    for (const [at, length, text] of fc.sample(cut, 300)) {
      peer.sendBytes(whole.slice(0, at) + text + whole.slice(at + length), server.sipPort);
    }
    const other = await harness.peer();
    other.send(other.make('OPTIONS', { callId: 'after', port: server.sipPort }), server.sipPort);
    await other.response(503);
  });

  it('as forged responses changes no call', async () => {
    const { server, srf } = await harness.start();
    const peer = await harness.peer();
    const forger = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP });
    const invite = await peer.request('INVITE');
    for (const via of ['SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKguess', 'SIP/2.0/UDP 127.0.0.1', 'nonsense']) {
      const from = header(invite, 'from');
      forger.sendBytes(
        `SIP/2.0 486 Busy\r\nVia: ${via}\r\nFrom: ${from}\r\nTo: <sip:x@y>;tag=1\r\nCall-ID: ${header(invite, 'call-id')}\r\nCSeq: ${header(invite, 'cseq')}\r\n\r\n`,
        server.sipPort,
      );
    }
    peer.reply(invite, 200, { body: SDP });
    await peer.request('ACK');
    expect((await calling).connected).toBe(true);
  });

  it('as garbled responses leaves the server unchanged', async () => {
    const { server, srf } = await harness.start();
    const peer = await harness.peer();
    const cut = fc.tuple(
      fc.constantFrom(180, 200, 302, 407, 486),
      fc.nat(600),
      fc.nat(12),
      fc.string({ maxLength: 6 }),
    );
    for (const [status, at, length, text] of fc.sample(cut, 60)) {
      srf.createUAC(peer.uri, { localSdp: SDP, auth: { username: 'a', password: 'b' } }).catch(() => {});
      const invite = await peer.request('INVITE');
      const challenge: [string, string][] = [['Proxy-Authenticate', 'Digest realm="r", nonce="n"']];
      const whole = serializeMessage(peer.reply(invite, 100, { contact: null }))
        .toString()
        .replace(' 100 ', ` ${status} `);
      const extra = `Contact: <${peer.uri}>\r\nRecord-Route: <sip:127.0.0.1:9;lr>\r\n${challenge[0]?.join(': ')}\r\n`;
      const answer = whole.replace('Content-Length', `${extra}Content-Length`);
      peer.sendBytes(answer.slice(0, at) + text + answer.slice(at + length));
      peer.reply(invite, 486);
    }
    const other = await harness.peer();
    other.send(other.make('OPTIONS', { callId: 'after', port: server.sipPort }), server.sipPort);
    await other.response(503);
  });

  it('between TCP messages is dropped, while a ping gets a response', async () => {
    const { server } = await harness.start();
    const peer = await harness.peer('tcp');
    peer.sendBytes('\r\n', server.sipPort);
    peer.send(peer.make('OPTIONS', { callId: 'tcp-1', port: server.sipPort }), server.sipPort);
    await peer.response(503);
    peer.sendBytes('\r\n\r\n', server.sipPort);
    const text = Buffer.concat([Buffer.from('\r\n'), Buffer.from(inviteText(peer, server.sipPort))]);
    for (const byte of text) peer.sendBytes(Buffer.from([byte]), server.sipPort);
    await peer.response(503);
  });
});

describe('address with port 0', () => {
  it('does no harm in a Via', async () => {
    const { server } = await harness.start();
    const peer = await harness.peer();
    const text = inviteText(peer, server.sipPort).replace(
      /Via: .*\r\n/,
      'Via: SIP/2.0/UDP 127.0.0.1:0;branch=z9hG4bK0\r\n',
    );
    peer.sendBytes(text, server.sipPort);
    // Retransmissions of the response would reveal a crash.
    await server.dump();
    peer.sendBytes(inviteText(peer, server.sipPort), server.sipPort);
    for (let repeats = 0; repeats < 4; repeats++) await peer.response(503);
    expect(await server.dump()).toMatchObject({ core: { dialogs: 0 } });
  });

  it('ends only the call when it is in a Contact', async () => {
    const { server, srf } = await harness.start();
    const peer = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP });
    const ended = calling.then(
      (dialog) => new Promise<void>((resolve) => dialog.once('destroy', () => resolve())),
      () => {},
    );
    peer.reply(await peer.request('INVITE'), 200, { body: SDP, contact: '<sip:peer@127.0.0.1:0>' });
    await ended;
    await untilCounts(server, (core) => core.dialogs === 0);
  });
});

function inviteText(peer: SipPeer, port: number): string {
  return [
    `INVITE sip:tandem@127.0.0.1:${port} SIP/2.0`,
    `Via: SIP/2.0/${peer.transport.toUpperCase()} 127.0.0.1:${peer.port};rport;branch=z9hG4bK-torture`,
    'Max-Forwards: 70',
    'From: <sip:peer@127.0.0.1>;tag=1',
    'To: <sip:tandem@127.0.0.1>',
    'Call-ID: torture',
    'CSeq: 1 INVITE',
    `Contact: <${peer.uri}>`,
    'Content-Type: application/sdp',
    `Content-Length: ${SDP.length}`,
    '',
    SDP,
  ].join('\r\n');
}
