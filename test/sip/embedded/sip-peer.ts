import dgram from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import {
  appendHeader,
  createRequest,
  createResponse,
  header,
  parseMessage,
  parseNameAddr,
  type SipMessage,
  type SipRequest,
  type SipResponse,
  StreamFramer,
  serializeMessage,
  tagOf,
} from '../../../sip/message/index.ts';

export const SDP =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n';

interface Waiter {
  matches: (message: SipMessage) => boolean;
  resolve: (message: SipMessage) => void;
}

/** A SIP element controlled by the test, without transactions. */
export class SipPeer {
  readonly transport: 'udp' | 'tcp' | 'tls';
  readonly port: number;
  readonly inbox: SipMessage[] = [];
  readonly #waiters: Waiter[] = [];
  readonly #write: (bytes: Buffer, port: number) => void;
  readonly #close: () => Promise<void>;
  #peerPort = 0;
  #dropStreams = (): void => {};
  #closing: Promise<void> | null = null;

  private constructor(
    transport: 'udp' | 'tcp' | 'tls',
    port: number,
    write: (bytes: Buffer, port: number) => void,
    close: () => Promise<void>,
  ) {
    this.transport = transport;
    this.port = port;
    this.#write = write;
    this.#close = close;
  }

  static async udp(): Promise<SipPeer> {
    const socket = dgram.createSocket('udp4');
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    const peer = new SipPeer(
      'udp',
      socket.address().port,
      (bytes, port) => socket.send(bytes, port, '127.0.0.1'),
      () => new Promise((resolve) => socket.close(() => resolve())),
    );
    socket.on('message', (bytes, source) => peer.#receive(bytes, source.port));
    return peer;
  }

  /** Listens, and responds on the connection of the last message. */
  static tcp(): Promise<SipPeer> {
    return SipPeer.#stream(null);
  }

  /** Presents its certificate also as a client, and accepts any certificate. */
  static tls(options: tls.TlsOptions): Promise<SipPeer> {
    return SipPeer.#stream(options);
  }

  static async #stream(security: tls.TlsOptions | null): Promise<SipPeer> {
    const sockets = new Set<net.Socket>();
    let last: net.Socket | null = null;
    const adopt = (socket: net.Socket): void => {
      const framer = new StreamFramer();
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => sockets.delete(socket));
      socket.on('data', (chunk) => {
        last = socket;
        for (const frame of framer.push(chunk)) {
          if (frame.type === 'message') peer.#receive(frame.bytes, socket.remotePort ?? 0);
        }
      });
    };
    const server = security ? tls.createServer(security, adopt) : net.createServer(adopt);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const peer: SipPeer = new SipPeer(
      security ? 'tls' : 'tcp',
      (server.address() as net.AddressInfo).port,
      (bytes, port) => {
        if (!last || last.destroyed) {
          last = security
            ? tls.connect({ ...certificateOf(security), port, host: '127.0.0.1', rejectUnauthorized: false })
            : net.connect(port, '127.0.0.1');
          adopt(last);
        }
        last.write(bytes);
      },
      async () => {
        for (const socket of sockets) socket.destroy();
        await new Promise<void>((resolve) => server.close(() => resolve()));
      },
    );
    peer.#dropStreams = () => {
      for (const socket of sockets) socket.destroy();
    };
    return peer;
  }

  get uri(): string {
    return `sip:peer@127.0.0.1:${this.port}${this.transport === 'udp' ? '' : `;transport=${this.transport}`}`;
  }

  /** Closes its connections, like a restarting carrier. */
  dropStreams(): void {
    this.#dropStreams();
  }

  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  /** Takes the next matching message from the inbox, waiting if necessary. */
  next(matches: (message: SipMessage) => boolean): Promise<SipMessage> {
    const index = this.inbox.findIndex(matches);
    const [found] = index === -1 ? [] : this.inbox.splice(index, 1);
    if (found) return Promise.resolve(found);
    return new Promise((resolve) => this.#waiters.push({ matches, resolve }));
  }

  async request(method: string): Promise<SipRequest> {
    return (await this.next((message) => message.kind === 'request' && message.method === method)) as SipRequest;
  }

  async response(statusCode: number): Promise<SipResponse> {
    const matches = (message: SipMessage): boolean => message.kind === 'response' && message.statusCode === statusCode;
    return (await this.next(matches)) as SipResponse;
  }

  send(message: SipMessage, port = this.#peerPort): void {
    this.sendBytes(serializeMessage(message), port);
  }

  sendBytes(bytes: Buffer | string, port = this.#peerPort): void {
    this.#write(typeof bytes === 'string' ? Buffer.from(bytes) : bytes, port);
  }

  /** A response with copied headers, a To tag and by default a Contact. */
  reply(
    request: SipRequest,
    statusCode: number,
    extra: {
      toTag?: string;
      headers?: [string, string][];
      body?: string;
      contact?: string | null;
      reasonPhrase?: string;
    } = {},
  ): SipResponse {
    const { reasonPhrase = 'Test', body = '' } = extra;
    const response = createResponse({ statusCode, reasonPhrase, body });
    for (const each of request.headers) {
      if (['via', 'from', 'call-id', 'cseq', 'record-route'].includes(each.key)) response.headers.push(each);
    }
    const to = header(request, 'to') ?? '';
    const hasTag = tagOf(to) !== null || statusCode === 100;
    appendHeader(response, 'To', hasTag ? to : `${to};tag=${extra.toTag ?? 'peer-tag'}`);
    const contact = extra.contact === undefined ? `<${this.uri}>` : extra.contact;
    if (contact !== null) appendHeader(response, 'Contact', contact);
    if (extra.body !== undefined) appendHeader(response, 'Content-Type', 'application/sdp');
    for (const [name, value] of extra.headers ?? []) appendHeader(response, name, value);
    this.send(response);
    return response;
  }

  make(
    method: string,
    options: { callId: string; sequence?: number; branch?: string; body?: string; port: number },
  ): SipRequest {
    const request = createRequest({
      method,
      uri: `sip:tandem@127.0.0.1:${options.port}`,
      headers: [
        ['Via', this.via(options.branch ?? `z9hG4bK-${options.callId}-${method}`)],
        ['Max-Forwards', '70'],
        ['From', `<sip:peer@127.0.0.1>;tag=from-${options.callId}`],
        ['To', '<sip:tandem@127.0.0.1>'],
        ['Call-ID', options.callId],
        ['CSeq', `${options.sequence ?? 1} ${method}`],
        ['Contact', `<${this.uri}>`],
      ],
      body: options.body ?? '',
    });
    if (options.body !== undefined) appendHeader(request, 'Content-Type', 'application/sdp');
    return request;
  }

  /** A request in the dialog of the own `invite` and its `response`. An ACK uses the CSeq number of the INVITE. */
  within(invite: SipRequest, response: SipResponse, method: string, sequence: number): SipRequest {
    const target = parseNameAddr(header(response, 'contact') ?? '').uri;
    return createRequest({
      method,
      uri: target,
      headers: [
        ['Via', this.via(`z9hG4bK-${header(invite, 'call-id')}-${method}-${sequence}`)],
        ['Max-Forwards', '70'],
        ['From', header(invite, 'from') ?? ''],
        ['To', header(response, 'to') ?? ''],
        ['Call-ID', header(invite, 'call-id') ?? ''],
        ['CSeq', `${sequence} ${method}`],
        ['Contact', `<${this.uri}>`],
      ],
    });
  }

  /** A request in the dialog of the server's `invite` and its `response`. */
  withinAnswered(invite: SipRequest, response: SipResponse, method: string, sequence: number): SipRequest {
    return createRequest({
      method,
      uri: parseNameAddr(header(invite, 'contact') ?? '').uri,
      headers: [
        ['Via', this.via(`z9hG4bK-${header(invite, 'call-id')}-${method}-${sequence}`)],
        ['Max-Forwards', '70'],
        ['From', header(response, 'to') ?? ''],
        ['To', header(invite, 'from') ?? ''],
        ['Call-ID', header(invite, 'call-id') ?? ''],
        ['CSeq', `${sequence} ${method}`],
        ['Contact', `<${this.uri}>`],
      ],
    });
  }

  via(branch: string): string {
    return `SIP/2.0/${this.transport.toUpperCase()} 127.0.0.1:${this.port};branch=${branch};rport`;
  }

  #receive(bytes: Buffer, port: number): void {
    this.#peerPort = port;
    const message = parseMessage(bytes);
    const index = this.#waiters.findIndex(({ matches }) => matches(message));
    const [waiter] = index === -1 ? [] : this.#waiters.splice(index, 1);
    if (waiter) waiter.resolve(message);
    else this.inbox.push(message);
  }
}

function certificateOf({ cert, key }: tls.TlsOptions): tls.ConnectionOptions {
  return { ...(cert ? { cert } : {}), ...(key ? { key } : {}) };
}
