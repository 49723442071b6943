import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import { type SipMessage, serializeMessage } from '../../message/index.ts';
import type { Application, SendResult } from '../core/application.ts';
import type { LocalAddress } from '../core/outgoing.ts';
import type { SipCore } from '../core/sip-core.ts';
import type { Remote } from '../transport/remote.ts';
import { type ControlCommand, parseCommand } from './commands.ts';
import { ControlFrameError, encodeFrame, FrameReader } from './frames.ts';

export interface ControlSessionOptions {
  socket: Socket;
  secret: string;
  core: SipCore;
  local: LocalAddress;
  /** `tcp/ip:port,udp/ip:port`, for the answer to `authenticate`. */
  hostPorts: string;
  onRoute: (session: ControlSession, verb: string, isWanted: boolean) => void;
  onClosed: (session: ControlSession) => void;
  /** Called when a command made us throw. It stays unanswered, and others continue. */
  onFault: (error: unknown) => void;
}

/**
 * One client of the control port: a stock drachtio-srf. Before the secret, any command but `authenticate` is answered
 * NOK and closes the connection.
 */
export class ControlSession implements Application {
  readonly #options: ControlSessionOptions;
  readonly #socket: Socket;
  readonly #reader = new FrameReader(MAX_UNAUTHENTICATED_BYTES);
  #isAuthenticated = false;
  #isClosed = false;

  constructor(options: ControlSessionOptions) {
    const { socket } = options;
    this.#options = options;
    this.#socket = socket;
    const deadline = setTimeout(() => socket.destroy(), AUTHENTICATE_WITHIN_MS);
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        clearTimeout(deadline);
        this.#isClosed = true;
        options.core.abandon(this);
        options.onClosed(this);
        resolve();
      });
    });
    this.#stopDeadline = () => clearTimeout(deadline);
  }

  /** Resolves when the connection is closed and its calls were ended. */
  readonly closed: Promise<void>;
  readonly #stopDeadline: () => void;

  get isOpen(): boolean {
    return !this.#isClosed && this.#isAuthenticated;
  }

  /** Closes after pending data is sent. */
  close(): void {
    this.#socket.destroySoon();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  deliverRequest(delivery: Parameters<Application['deliverRequest']>[0]): void {
    const { request, source, transactionId, dialogId } = delivery;
    const { host, port } = this.#options.local;
    const local = dialogId === null ? `${host}|${port}|` : '';
    this.#deliver('network', request, source, `${transactionId}|${dialogId ?? ''}|${local}`);
  }

  deliverResponse(delivery: Parameters<Application['deliverResponse']>[0]): void {
    const { response, source, transactionId, dialogId } = delivery;
    this.#deliver('network', response, source, `${transactionId}|${dialogId ?? ''}|`);
  }

  deliverOwn(delivery: Parameters<Application['deliverOwn']>[0]): void {
    this.#deliver('application', delivery.request, null, `unsolicited|${delivery.dialogId ?? ''}|`);
  }

  #deliver(by: 'network' | 'application', message: SipMessage, source: Remote | null, tail: string): void {
    const bytes = serializeMessage(withReadableReason(message));
    const from = source
      ? `${bytes.length}|${source.transport}|${source.host}|${source.port}`
      : `${by === 'network' ? 0 : bytes.length}|udp||0`;
    this.#write(`${randomUUID()}|sip|${by}|${from}|${timeOfDay()}|${tail}`, bytes);
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader.push(chunk, (payload) => this.#receive(payload));
    } catch (error) {
      if (!(error instanceof ControlFrameError)) throw error;
      this.#socket.destroy();
    }
  }

  #receive(payload: Buffer): void {
    if (this.#isClosed || this.#socket.writableEnded) return;
    try {
      this.#obey(parseCommand(payload));
    } catch (error) {
      this.#options.onFault(error);
    }
  }

  #obey(command: ControlCommand | null): void {
    if (!command) {
      this.#socket.destroy();
      return;
    }
    const { id } = command;
    if (command.kind === 'authenticate') this.#authenticate(id, command.secret);
    else if (!this.#isAuthenticated) {
      this.#reply(id, 'NOK|not authenticated');
      this.close();
    } else if (command.kind === 'ping') this.#reply(id, 'OK|pong');
    else if (command.kind === 'refused') this.#reply(id, `NOK|${command.reason}`);
    else if (command.kind === 'sip') {
      const isResponse = command.command.type === 'response';
      this.#options.core.execute(this, command.command, (result) => this.#replySent(id, result, isResponse));
    } else {
      this.#options.onRoute(this, command.verb, command.kind === 'route');
      this.#reply(id, 'OK');
    }
  }

  #authenticate(id: string, secret: string): void {
    if (!sameSecret(secret, this.#options.secret)) {
      this.#reply(id, 'NO|incorrect secret');
      this.close();
      return;
    }
    this.#isAuthenticated = true;
    this.#stopDeadline();
    this.#reader.maxPayloadBytes = MAX_PAYLOAD_BYTES;
    this.#reply(id, `OK|${this.#options.hostPorts}|${VERSION}|${this.#options.hostPorts}`);
  }

  #replySent(id: string, result: SendResult, isResponse: boolean): void {
    if (!result.ok) {
      this.#reply(id, `NOK|${result.reason}`);
      return;
    }
    const { message, remote, transactionId, dialogId } = result;
    const bytes = serializeMessage(message);
    const { host, port } = this.#options.local;
    const tail = isResponse
      ? `${remote.transport}|${remote.host}|${remote.port}|${timeOfDay()}|${transactionId}|${dialogId ?? ''}||Msg sent:|`
      : `${remote.transport}|${host}|${port}|${timeOfDay()}|${transactionId}|Msg sent:|`;
    this.#reply(id, `OK|application|${bytes.length}|${tail}`, bytes);
  }

  #reply(id: string, text: string, message: Buffer | null = null): void {
    this.#write(`${randomUUID()}|response|${id}|${text}`, message);
  }

  #write(head: string, message: Buffer | null): void {
    if (this.#isClosed || this.#socket.writableEnded) return;
    // A client that stopped reading must not fill our memory; its calls end as if it died.
    if (this.#socket.writableLength > MAX_UNREAD_BYTES) this.#socket.destroy();
    else this.#socket.write(encodeFrame(head, message));
  }
}

/** Hashing hides the content and length of the secret from timing. */
function sameSecret(given: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

/** drachtio-srf drops a response with a Unicode line separator in its reason phrase, and prints all of it. */
function withReadableReason(message: SipMessage): SipMessage {
  if (message.kind === 'request') return message;
  return { ...message, reasonPhrase: message.reasonPhrase.replace(/[\u2028\u2029]/g, ' ') };
}

function timeOfDay(): string {
  return `${new Date().toISOString().slice(11, 23)}000`;
}

/** drachtio-srf pings servers from v0.8.2 on. */
const VERSION = 'v0.9.10';
const AUTHENTICATE_WITHIN_MS = 10_000;
const MAX_UNAUTHENTICATED_BYTES = 2048;
const MAX_PAYLOAD_BYTES = 131_072;
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
