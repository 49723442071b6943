import type { Clock } from '../../../sip/embedded/clock.ts';
import type { Application, SendResult } from '../../../sip/embedded/core/application.ts';
import { type SipCommand, SipCore } from '../../../sip/embedded/core/sip-core.ts';
import { sipTimers } from '../../../sip/embedded/sip-timers.ts';
import { createResolver } from '../../../sip/embedded/transport/next-hop.ts';
import type { Remote } from '../../../sip/embedded/transport/remote.ts';
import {
  createRequest,
  createResponse,
  header,
  parseMessage,
  type SipMessage,
  type SipRequest,
  type SipResponse,
  tagOf,
} from '../../../sip/message/index.ts';
import type { CoreCounts } from './server-harness.ts';
import { SimulatedClock } from './simulated-clock.ts';

export const PEER: Remote = { transport: 'udp', host: '192.0.2.7', port: 5060, connectionId: null };

type Headers = readonly (readonly [string, string])[];

/** The user agent without sockets, threads or real time, with sent and delivered messages. */
export class CoreBench {
  readonly clock = new SimulatedClock();
  readonly core: SipCore;
  readonly sent: SipMessage[] = [];
  readonly destinations: string[] = [];
  /** Connection of each sent message. */
  readonly connections: (number | null)[] = [];
  /** Connections that the network replaces by new ones. */
  readonly closed = new Set<number>();
  readonly delivered: { message: SipMessage; transactionId: string; dialogId: string | null }[] = [];
  readonly application: Application;
  isOpen = true;

  /** `methods`: those that the application handles; default: all. */
  constructor(clock?: Clock, methods?: ReadonlySet<string>) {
    const self = this;
    const take = (message: SipMessage, transactionId: string, dialogId: string | null): void => {
      self.delivered.push({ message, transactionId, dialogId });
    };
    this.application = {
      get isOpen() {
        return self.isOpen;
      },
      deliverRequest: ({ request, transactionId, dialogId }) => take(request, transactionId, dialogId),
      deliverResponse: ({ response, transactionId, dialogId }) => take(response, transactionId, dialogId),
      deliverOwn: ({ request, dialogId }) => take(request, 'unsolicited', dialogId),
    };
    this.core = new SipCore({
      network: {
        send: (bytes, { host, connectionId }) => {
          this.sent.push(parseMessage(bytes));
          this.destinations.push(host);
          this.connections.push(connectionId);
          if (connectionId === null) return null;
          const isReused = !this.closed.has(connectionId);
          return { connectionId: isReused ? connectionId : 1000 + connectionId, isReused };
        },
        distrust: () => {},
      },
      local: { host: '192.0.2.1', port: 5060, tlsPort: null },
      transports: ['udp', 'tcp', 'tls'],
      timers: sipTimers(),
      resolve: createResolver('127.0.0.1'),
      route: (method) => (this.isOpen && (methods?.has(method) ?? true) ? this.application : null),
      clock: clock ?? this.clock,
    });
  }

  get counts(): CoreCounts {
    return this.core.dump() as CoreCounts;
  }

  execute(command: SipCommand): SendResult | null {
    let result: SendResult | null = null;
    this.core.execute(this.application, command, (given) => {
      result = given;
    });
    return result;
  }

  invite(body = 'v=0\r\n'): { request: SipRequest; transactionId: string; dialogId: string } {
    const asked = createRequest({ method: 'INVITE', uri: 'sip:peer@192.0.2.7', body });
    const result = this.execute({ type: 'new', proxyUri: null, message: asked });
    if (!result?.ok || result.message.kind !== 'request') throw new Error('The INVITE was not sent');
    const request = result.message;
    const dialogId = `${header(request, 'call-id')};from-tag=${tagOf(header(request, 'from'))}`;
    return { request, transactionId: result.transactionId, dialogId };
  }

  inDialog(dialogId: string, method: string): SendResult | null {
    return this.execute({ type: 'in-dialog', dialogId, message: createRequest({ method, uri: 'sip:placeholder' }) });
  }

  respond(transactionId: string, statusCode: number, headers: Headers = []): SendResult | null {
    return this.execute({ type: 'response', transactionId, message: createResponse({ statusCode, headers }) });
  }

  answer(
    request: SipRequest,
    statusCode: number,
    toTag = 'peer-tag',
    {
      contact = 'sip:peer@192.0.2.7',
      headers = [],
      from = PEER.host,
      transport = PEER.transport,
      connectionId = PEER.connectionId,
      body = '',
    }: { contact?: string; headers?: Headers; from?: string; body?: string } & Partial<Remote> = {},
  ): void {
    const answer = answerTo(request, statusCode, toTag, [['Contact', `<${contact}>`], ...headers]);
    answer.body = Buffer.from(body);
    this.core.onMessage(answer, { ...PEER, host: from, transport, connectionId });
  }

  /** Request of the peer within the dialog of `invite`. */
  fromPeer(
    invite: SipRequest,
    method: string,
    sequence: number,
    contact = 'sip:peer@192.0.2.7',
    source: Partial<Remote> = {},
  ): void {
    const request = createRequest({
      method,
      uri: 'sip:192.0.2.1:5060',
      headers: [
        ['Via', `SIP/2.0/UDP 192.0.2.7:5060;branch=z9hG4bK-peer-${method}-${sequence}`],
        ['From', `<sip:peer@192.0.2.7>;tag=peer-tag`],
        ['To', header(invite, 'from') ?? ''],
        ['Call-ID', header(invite, 'call-id') ?? ''],
        ['CSeq', `${sequence} ${method}`],
        ['Contact', `<${contact}>`],
      ],
    });
    this.core.onMessage(request, { ...PEER, ...source });
  }

  fromStranger(
    method: string,
    id: string,
    {
      body = '',
      callId = id,
      sequence = 1,
      to = '<sip:tandem@192.0.2.1>',
      headers = [],
      contact = 'sip:stranger@192.0.2.9',
      from = {},
    }: {
      body?: string;
      callId?: string;
      sequence?: number;
      to?: string;
      headers?: Headers;
      contact?: string;
      from?: Partial<Remote>;
    } = {},
  ): void {
    const request = createRequest({
      method,
      uri: 'sip:192.0.2.1:5060',
      headers: [
        ['Via', `SIP/2.0/UDP 192.0.2.9:5060;branch=z9hG4bK-${id}`],
        ['From', `<sip:stranger@192.0.2.9>;tag=${callId}`],
        ['To', to],
        ['Call-ID', callId],
        ['CSeq', `${sequence} ${method}`],
        ['Contact', `<${contact}>`],
        ...headers,
      ],
      body,
    });
    this.core.onMessage(request, { ...PEER, host: '192.0.2.9', ...from });
  }

  requests(method: string): SipRequest[] {
    return this.sent.filter((each): each is SipRequest => each.kind === 'request' && each.method === method);
  }

  responses(statusCode: number, method: string): SipResponse[] {
    return this.sent.filter(
      (each): each is SipResponse =>
        each.kind === 'response' && each.statusCode === statusCode && (header(each, 'cseq') ?? '').endsWith(method),
    );
  }

  transactionOf(method: string): string {
    const found = this.delivered.findLast(({ message }) => message.kind === 'request' && message.method === method);
    if (!found) throw new Error(`No ${method} was delivered`);
    return found.transactionId;
  }
}

function answerTo(request: SipRequest, statusCode: number, toTag: string, added: Headers): SipResponse {
  const to = header(request, 'to') ?? '';
  const response = createResponse({
    statusCode,
    headers: [['To', tagOf(to) === null ? `${to};tag=${toTag}` : to], ...added],
  });
  response.headers.push(...request.headers.filter(({ key }) => ['via', 'from', 'call-id', 'cseq'].includes(key)));
  return response;
}
