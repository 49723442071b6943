import { type ClientOptions, WebSocket } from 'ws';
import { untilTruthy } from '../eventually.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of any shape
type Message = any;

export interface SttClient {
  socket: WebSocket;
  messages: Message[];
  types: () => string[];
  send(message: object | string): void;
  /** Resolves with the newest message of a type, after `count` of them. */
  until(type: string, count?: number): Promise<Message>;
  closed: Promise<number>;
}

export interface SttClientOptions extends ClientOptions {
  protocols?: string[];
}

export function connectStt(
  origin: string,
  query: Record<string, string>,
  { protocols = [], ...options }: SttClientOptions = {},
): SttClient {
  const url = `${origin.replace('http', 'ws')}/ws/stt?${new URLSearchParams(query)}`;
  const socket = new WebSocket(url, protocols, options);
  const messages: Message[] = [];
  socket.on('message', (data) => messages.push(JSON.parse(data.toString())));
  socket.on('error', () => {
    // The close event follows.
  });
  const closed = new Promise<number>((resolve) => socket.on('close', (code) => resolve(code)));
  return {
    socket,
    messages,
    types: () => messages.map(({ type }) => type),
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    async until(type, count = 1) {
      const matching = () => messages.filter((message) => message.type === type);
      await untilTruthy(() => matching().length >= count);
      return matching()[count - 1];
    },
    closed,
  };
}

/** Resolves once the server accepts audio. */
export async function startStt(client: SttClient, start: object = {}): Promise<Message> {
  await client.until('connected', 2);
  client.send({ type: 'start', ...start });
  return await client.until('session_started');
}
