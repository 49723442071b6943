import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** A SIP peer over UDP on loopback that answers every request at once, at almost no cost. */

export interface AnsweringPeer {
  port: number;
  close(): void;
}

export interface Invitation {
  /** User part of the request URI. */
  user: string;
  callId: string | null;
  /** Port of the offered audio; null without an offer. */
  rtpPort: number | null;
}

/** The peer's status and, for 200, the port where it receives audio. */
export type InvitationAnswer = { status: '486 Busy Here' } | { status: '200 OK'; rtpPort: number };

const HOST = '127.0.0.1';

export async function startAnsweringPeer(answer: (invitation: Invitation) => InvitationAnswer): Promise<AnsweringPeer> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4_000_000 });
  socket.bind(0, HOST);
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.on('message', (message, from) => {
    const text = message.toString('latin1');
    const method = text.slice(0, text.indexOf(' '));
    // An ACK has no response (RFC 3261 §17.1.1.3), and the peer sends no requests that have one.
    if (method === 'ACK' || method === 'SIP/2.0') return;
    const copied = text.split('\r\n').filter((line) => /^(Via|From|To|Call-ID|CSeq|Record-Route):/i.test(line));
    const headers = copied.map((line) => (/^To:/i.test(line) && !/;tag=/.test(line) ? `${line};tag=peer` : line));
    const answered: InvitationAnswer | { status: '200 OK' } =
      method === 'INVITE' ? answer(invitationOf(text)) : { status: '200 OK' };
    const body = 'rtpPort' in answered ? sdp(answered.rtpPort) : '';
    const lines = [`SIP/2.0 ${answered.status}`, ...headers, `Contact: <sip:peer@${HOST}:${port}>`];
    if (body !== '') lines.push('Content-Type: application/sdp');
    socket.send([...lines, `Content-Length: ${body.length}`, '', body].join('\r\n'), from.port, from.address);
  });
  return { port, close: () => socket.close() };
}

function invitationOf(text: string): Invitation {
  const rtpPort = /^m=audio (\d+)/m.exec(text)?.[1];
  return {
    user: /^INVITE sips?:([^@;>\s]*)@/.exec(text)?.[1] ?? '',
    callId: /^X-Tandem-Call-Id: (\S+)/im.exec(text)?.[1] ?? null,
    rtpPort: rtpPort === undefined ? null : Number(rtpPort),
  };
}

function sdp(rtpPort: number): string {
  return [
    'v=0',
    `o=- 1 1 IN IP4 ${HOST}`,
    's=-',
    `c=IN IP4 ${HOST}`,
    't=0 0',
    `m=audio ${rtpPort} RTP/AVP 0 101`,
    'a=rtpmap:0 PCMU/8000',
    'a=rtpmap:101 telephone-event/8000',
    'a=sendrecv',
    '',
  ].join('\r\n');
}
