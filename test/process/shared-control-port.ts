import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { encodeFrame, FrameReader } from '../../sip/embedded/control/frames.ts';

/**
 * A control port shared by several servers, like drachtio-server's: calls of a dead server continue, and others may end
 * them. All servers share one session of the embedded SIP server. Responses go to the sender of the request, requests
 * within a dialog to its owner.
 */
export async function openSharedControlPort(options: {
  /** Control port of the embedded SIP server. */
  target: number;
  secret: string;
  /** Default 0: any free port. */
  port?: number;
}): Promise<{ port: number }> {
  const upstream = await Upstream.open(options);
  const server = createServer({ noDelay: true }, (socket) => upstream.adopt(socket));
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as { port: number }).port };
}

const MOST_BYTES = 1_000_000;
/** More than the transactions of a test. */
const MOST_REMEMBERED = 20_000;

class Upstream {
  readonly #socket: Socket;
  readonly #secret: string;
  /** The server's answer to `authenticate`, after `OK`. */
  #greeting = '';
  readonly #clients = new Set<Socket>();
  /** Sockets by SIP method, newest first. */
  readonly #routes = new Map<string, Socket[]>();
  readonly #askers = new Map<string, Socket>();
  readonly #transactions = new Map<string, Socket>();
  readonly #dialogs = new Map<string, Socket>();

  private constructor(socket: Socket, secret: string) {
    this.#socket = socket;
    this.#secret = secret;
  }

  static async open({ target, secret }: { target: number; secret: string }): Promise<Upstream> {
    const socket = connect({ host: '127.0.0.1', port: target, noDelay: true });
    await once(socket, 'connect');
    const upstream = new Upstream(socket, secret);
    const greeted = Promise.withResolvers<void>();
    readFrames(socket, (payload) => {
      const words = wordsOf(payload);
      if (words[1] === 'response' && words[2] === 'greeting') {
        upstream.#greeting = words.slice(4).join('|');
        greeted.resolve();
      } else upstream.#fromServer(words, payload);
    });
    socket.write(encodeFrame(`greeting|authenticate|${secret}|`, null));
    await greeted.promise;
    return upstream;
  }

  adopt(client: Socket): void {
    let isKnown = false;
    client.on('error', () => {});
    client.on('close', () => {
      this.#clients.delete(client);
      for (const [verb, takers] of this.#routes) {
        this.#routes.set(
          verb,
          takers.filter((taker) => taker !== client),
        );
      }
    });
    readFrames(client, (payload) => {
      const [id = '', kind, ...rest] = wordsOf(payload);
      if (kind === 'authenticate') {
        isKnown = rest[0] === this.#secret;
        reply(client, id, isKnown ? `OK|${this.#greeting}` : 'NO|incorrect secret');
        if (isKnown) this.#clients.add(client);
      } else if (!isKnown) client.destroy();
      else if (kind === 'ping') reply(client, id, 'OK|pong');
      else this.#fromClient(client, { id, kind, verb: rest[0] ?? '', payload });
    });
  }

  #fromClient(client: Socket, { id, kind, verb, payload }: ClientMessage): void {
    if (kind === 'route') this.#routes.set(verb, [client, ...(this.#routes.get(verb) ?? [])]);
    if (kind === 'remove_route') {
      const others = (this.#routes.get(verb) ?? []).filter((taker) => taker !== client);
      this.#routes.set(verb, others);
      // The server's session keeps the route for the others.
      if (others.length > 0) {
        reply(client, id, 'OK');
        return;
      }
    }
    remember(this.#askers, id, client);
    forward(this.#socket, payload);
  }

  #fromServer(words: string[], payload: Buffer): void {
    if (words[1] === 'response') {
      const [asked = '', isOk, , , , , , , transaction = '', dialog = ''] = words.slice(2);
      const client = this.#askers.get(asked);
      this.#askers.delete(asked);
      if (client === undefined) return;
      if (isOk === 'OK' && transaction !== '') remember(this.#transactions, transaction, client);
      if (isOk === 'OK' && dialog.includes('-tag=')) remember(this.#dialogs, dialog, client);
      forward(client, payload);
      return;
    }
    const [transaction = '', dialog = ''] = words.slice(8);
    const owner = this.#transactions.get(transaction) ?? this.#dialogs.get(dialog);
    const isResponse = /\r\nSIP\/2\.0 /.test(payload.toString('latin1', 0, MOST_HEAD_BYTES));
    const taker = owner && this.#clients.has(owner) ? owner : isResponse ? undefined : this.#takerOf(payload);
    if (taker === undefined) return;
    if (transaction !== 'unsolicited') remember(this.#transactions, transaction, taker);
    if (dialog !== '') remember(this.#dialogs, dialog, taker);
    forward(taker, payload);
  }

  /** The latest subscriber to the method, or any socket if there is none. */
  #takerOf(payload: Buffer): Socket | undefined {
    const method = /\r\n([A-Z]+) /.exec(payload.toString('latin1', 0, MOST_HEAD_BYTES))?.[1] ?? '';
    return this.#routes.get(method.toLowerCase())?.[0] ?? [...this.#clients][0];
  }
}

interface ClientMessage {
  id: string;
  kind: string | undefined;
  verb: string;
  payload: Buffer;
}

/** Upper bound of the words before a message, up to its method or status. */
const MOST_HEAD_BYTES = 600;

function wordsOf(payload: Buffer): string[] {
  const end = payload.indexOf('\r\n');
  return payload.toString('utf8', 0, end === -1 ? payload.length : end).split('|');
}

function readFrames(socket: Socket, onPayload: (payload: Buffer) => void): void {
  const reader = new FrameReader(MOST_BYTES);
  socket.on('data', (chunk: Buffer) => reader.push(chunk, onPayload));
}

function forward(socket: Socket, payload: Buffer): void {
  if (socket.destroyed) return;
  socket.write(Buffer.concat([Buffer.from(`${payload.length}#`), payload]));
}

function reply(socket: Socket, id: string, words: string): void {
  socket.write(encodeFrame(`${randomUUID()}|response|${id}|${words}`, null));
}

function remember(map: Map<string, Socket>, key: string, client: Socket): void {
  map.delete(key);
  map.set(key, client);
  if (map.size > MOST_REMEMBERED) map.delete(map.keys().next().value!);
}
