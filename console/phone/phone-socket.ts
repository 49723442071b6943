import type { Notice, SendRequest } from './phone-messages.ts';

/** The socket is lost. The request may have reached the server. */
export class SocketLost extends Error {
  override readonly name = 'SocketLost';
}

/** The server rejected a request. */
export class PhoneRefusal extends Error {
  override readonly name = 'PhoneRefusal';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export interface PhoneSocket {
  /** @throws PhoneRefusal, SocketLost */
  request: SendRequest;
  /** Stops all reports. */
  close(): void;
}

interface PhoneSocketOptions {
  /** `token` or `resume`. */
  query: Record<string, string>;
  onNotice: (notice: Notice) => void;
  /** Code and reason of the close (RFC 6455 §7.4); 1006 without an answer to a ping. Called once. */
  onClose: (code: number, reason: string) => void;
}

/** Detects a dead connection well within the ten seconds that the server waits for a phone. */
const PING_EVERY_MS = 5_000;
const PING_TIMEOUT_MS = 4_000;

/** One WebSocket of a phone. Numbers the requests and matches the replies. */
export function openPhoneSocket({ query, onNotice, onClose }: PhoneSocketOptions): PhoneSocket {
  const url = new URL('/ws/phone', location.href.replace(/^http/, 'ws'));
  url.search = String(new URLSearchParams(query));
  const socket = new WebSocket(url);
  const waiting = new Map<number, PromiseWithResolvers<never>>();
  let nextId = 1;
  let isOver = false;
  const pinging = setInterval(() => {
    if (socket.readyState !== WebSocket.OPEN) return;
    const late = setTimeout(() => end(1006, 'no answer to a ping'), PING_TIMEOUT_MS);
    request('ping', {}).then(
      () => clearTimeout(late),
      () => clearTimeout(late),
    );
  }, PING_EVERY_MS);

  function close(): void {
    isOver = true;
    clearInterval(pinging);
    socket.close();
    for (const { reject } of waiting.values()) reject(new SocketLost('The connection to the server is lost.'));
    waiting.clear();
  }

  function end(code: number, reason: string): void {
    if (isOver) return;
    close();
    onClose(code, reason);
  }

  const request: SendRequest = (type, fields) => {
    const answer = Promise.withResolvers<never>();
    if (isOver || socket.readyState !== WebSocket.OPEN) {
      answer.reject(new SocketLost('The connection to the server is lost.'));
      return answer.promise;
    }
    const id = nextId++;
    waiting.set(id, answer);
    socket.send(JSON.stringify({ id, type, ...fields }));
    return answer.promise;
  };

  socket.onclose = ({ code, reason }) => end(code, reason);
  socket.onmessage = ({ data }: MessageEvent<string>) => {
    if (isOver) return;
    const message = JSON.parse(data);
    if (message.type !== 'reply' && message.type !== 'error') {
      onNotice(message as Notice);
      return;
    }
    const answer = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.type === 'reply') answer?.resolve(message as never);
    else answer?.reject(new PhoneRefusal(message.code, message.message));
  };
  return { request, close };
}
