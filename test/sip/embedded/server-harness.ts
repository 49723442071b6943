import { once } from 'node:events';
import Srf from 'drachtio-srf';
import {
  type EmbeddedSipServer,
  type EmbeddedSipServerOptions,
  startEmbeddedSipServer,
} from '../../../sip/embedded/embedded-sip-server.ts';
import { header, parseVia, type SipMessage } from '../../../sip/message/index.ts';
import { SipPeer } from './sip-peer.ts';

export const SECRET = 'correct horse';

/** Fast retransmissions with long timeouts, for slow machines. */
const TEST_TIMERS = { t1Ms: 150, t2Ms: 300, t4Ms: 100, timerDMs: 300, inviteTimeoutMs: 25_000 };

/** The used parts of drachtio-srf, whose own types are incomplete. */
export interface TestResponse {
  status: number;
  reason: string;
  body: string;
  source_address: string;
  get(name: string): string;
  send(status: number, options?: object, callback?: (error: unknown, sent: TestResponse) => void): void;
}

export interface TestRequest {
  method: string;
  uri: string;
  body: string;
  get(name: string): string;
  cancel(options?: object, callback?: (error: Error | null) => void): void;
  on(event: 'response', listener: (response: TestResponse, ack: () => void) => void): void;
  on(event: 'cancel', listener: () => void): void;
}

export interface TestDialog {
  id: string;
  connected: boolean;
  sip: { callId: string; localTag: string; remoteTag: string };
  remote: { sdp: string };
  destroy(options?: object): Promise<TestRequest>;
  request(options: { method: string; headers?: object; body?: string }): Promise<TestResponse>;
  modify(sdp: string): Promise<string>;
  on(event: string, listener: (request: TestRequest, detail: never) => void): void;
  once(event: string, listener: (request: TestRequest, detail: string) => void): void;
}

export interface TestSrf {
  connect(options: object): void;
  disconnect(): void;
  on(event: string, listener: (...values: never[]) => void): void;
  createUAC(
    uri: string,
    options: object,
    progress?: {
      cbRequest?: (error: Error | null, request: TestRequest) => void;
      cbProvisional?: (response: TestResponse) => void;
    },
  ): Promise<TestDialog>;
  createUAS(request: TestRequest, response: TestResponse, options: object): Promise<TestDialog>;
  request(uri: string, options: object, callback: (error: Error | null, request: TestRequest) => void): void;
  invite(handler: (request: TestRequest, response: TestResponse) => void): void;
  options(handler: (request: TestRequest, response: TestResponse) => void): void;
}

/** Resources of one test; `closeAll` closes them in reverse order. */
export class Harness {
  /** Errors of the servers; `closeAll` fails if there are any. */
  readonly faults: Error[] = [];
  readonly #opened: (() => Promise<void>)[] = [];

  async start(
    options: Partial<Pick<EmbeddedSipServerOptions, 'transports' | 'tls' | 'sipHost' | 'onExit' | 'onUntrusted'>> & {
      timers?: object;
    } = {},
  ): Promise<{ server: EmbeddedSipServer; srf: TestSrf }> {
    const server = await startEmbeddedSipServer({
      sipHost: options.sipHost ?? '127.0.0.1',
      sipPort: 0,
      transports: options.transports ?? ['udp', 'tcp'],
      ...(options.tls ? { tls: options.tls } : {}),
      ...(options.onUntrusted ? { onUntrusted: options.onUntrusted } : {}),
      secret: SECRET,
      signal: new AbortController().signal,
      timers: { ...TEST_TIMERS, ...options.timers },
      onFault: (error) => this.faults.push(error),
      ...(options.onExit ? { onExit: options.onExit } : {}),
    });
    this.#opened.push(() => server.close());
    return { server, srf: await this.connect(server) };
  }

  async connect(server: EmbeddedSipServer): Promise<TestSrf> {
    const client = new Srf();
    const srf = client as unknown as TestSrf;
    srf.on('error', () => {});
    const connected = once(client, 'connect');
    srf.connect({ host: server.controlHost, port: server.controlPort, secret: SECRET, reconnect: { maxAttempts: 1 } });
    await connected;
    let isConnected = true;
    srf.on('close', () => {
      isConnected = false;
    });
    this.#opened.push(async () => {
      if (isConnected) srf.disconnect();
    });
    return srf;
  }

  async peer(transport: 'udp' | 'tcp' = 'udp'): Promise<SipPeer> {
    const peer = await SipPeer[transport]();
    this.#opened.push(() => peer.close());
    return peer;
  }

  onClose(close: () => Promise<void>): void {
    this.#opened.push(close);
  }

  async closeAll(): Promise<void> {
    for (const close of this.#opened.splice(0).reverse()) await close();
    const [fault] = this.faults.splice(0);
    if (fault) throw fault;
  }
}

/** Polls the server, without sleeping, until its counts match. */
export async function untilCounts(server: EmbeddedSipServer, isDone: (core: CoreCounts) => boolean): Promise<void> {
  for (;;) {
    const { core } = (await server.dump()) as { core: CoreCounts };
    if (isDone(core)) return;
  }
}

/** A route is registered over TCP, and a UDP request could overtake it. */
export async function untilRouted(server: EmbeddedSipServer, verb: string): Promise<void> {
  for (;;) {
    const { control } = (await server.dump()) as { control: { routes: string[] } };
    if (control.routes.includes(verb)) return;
  }
}

export interface CoreCounts {
  transactions: { outgoing: number; incoming: number };
  dialogs: number;
  invitesSent: number;
  requestsUnanswered: number;
}

export function branchOf(message: SipMessage): string | null | undefined {
  return parseVia(header(message, 'via') ?? '').params.get('branch');
}

export function cseqOf(message: SipMessage): number {
  return Number.parseInt(header(message, 'cseq') ?? '', 10);
}
