import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';

export interface ScriptedServerOptions {
  authentication?: 'accept' | 'refuse' | 'ignore';
  /** Called for each message after authentication; default: no response. */
  onMessage?: (message: ScriptedMessage) => void;
}

export interface ScriptedMessage {
  id: string;
  /** Words of the first line, after the id. */
  words: string[];
  sip: string;
  send: (payload: string) => void;
}

/** A server with drachtio's framing and scripted behaviour, for faults that a real one never shows. */
export class ScriptedServer {
  authentication: 'accept' | 'refuse' | 'ignore';
  readonly received: ScriptedMessage[] = [];
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #waiting = new Set<() => void>();
  readonly #onMessage: (message: ScriptedMessage) => void;

  private constructor(options: ScriptedServerOptions, server: Server) {
    this.#server = server;
    this.authentication = options.authentication ?? 'accept';
    this.#onMessage = options.onMessage ?? (() => {});
    server.on('connection', (socket) => this.#adopt(socket));
  }

  static async start(options: ScriptedServerOptions = {}, port = 0): Promise<ScriptedServer> {
    const server = createServer();
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return new ScriptedServer(options, server);
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  sendRaw(bytes: string): void {
    for (const socket of this.#sockets) socket.write(bytes);
  }

  send(payload: string): void {
    this.sendRaw(frame(payload));
  }

  async until(matches: (message: ScriptedMessage) => boolean): Promise<void> {
    while (!this.received.some(matches)) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
      this.#waiting.clear();
    }
  }

  dropClients(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.dropClients();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #adopt(socket: Socket): void {
    this.connections++;
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    let buffered = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      buffered = Buffer.concat([buffered, chunk]);
      for (;;) {
        const hash = buffered.indexOf('#');
        const bytes = Number(buffered.toString('latin1', 0, Math.max(hash, 0)));
        if (hash < 0 || buffered.length < hash + 1 + bytes) return;
        const payload = buffered.toString('utf8', hash + 1, hash + 1 + bytes);
        buffered = buffered.subarray(hash + 1 + bytes);
        this.#take(socket, payload);
      }
    });
  }

  #take(socket: Socket, payload: string): void {
    const lineEnd = payload.indexOf('\r\n');
    const [id = '', ...words] = (lineEnd < 0 ? payload : payload.slice(0, lineEnd)).split('|');
    const send = (text: string) => void socket.write(frame(text));
    const message = { id, words, sip: lineEnd < 0 ? '' : payload.slice(lineEnd + 2), send };
    this.received.push(message);
    for (const wake of [...this.#waiting]) wake();
    if (words[0] === 'authenticate') {
      if (this.authentication === 'accept') send(`x|response|${id}|OK|udp/127.0.0.1:5060|v0.9.10|`);
      if (this.authentication === 'refuse') {
        send(`x|response|${id}|NO|incorrect secret`);
        socket.end();
      }
      return;
    }
    if (words[0] === 'route') send(`x|response|${id}|OK`);
    else this.#onMessage(message);
  }
}

function frame(payload: string): string {
  return `${Buffer.byteLength(payload)}#${payload}`;
}
