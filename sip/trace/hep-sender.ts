import { createSocket, type Socket } from 'node:dgram';
import { lookup as lookUpByDns } from 'node:dns/promises';
import { repeat } from '../../runtime/waiting.ts';
import { hepDatagram } from './hep.ts';
import type { CallMessage } from './wire-message.ts';

/** Sends copies of messages to a HEP collector such as Homer, without waiting or reporting failures to calls. */
export interface HepSender extends AsyncDisposable {
  /** Never throws. */
  send(message: CallMessage): void;
  dump(): { sent: number; dropped: number };
}

export interface HepSenderOptions {
  collector: { host: string; port: number };
  captureId: number;
  logger: { warn(fields: object, message: string): void };
  /** Default: DNS. */
  lookup?: (host: string) => Promise<{ address: string; family: number }>;
}

export function openHepSender({ collector, captureId, logger, lookup = lookUpByDns }: HepSenderOptions): HepSender {
  const closing = new AbortController();
  const sockets = new Map<number, Socket>();
  let target: { address: string; family: number } | null = null;
  /** Queue until the collector's name is resolved. */
  let early: CallMessage[] = [];
  let sent = 0;
  let dropped = 0;

  function socketOf(family: number): Socket {
    const existing = sockets.get(family);
    if (existing) return existing;
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4').unref();
    socket.on('error', () => {});
    sockets.set(family, socket);
    return socket;
  }

  function post(message: CallMessage, { address, family }: { address: string; family: number }): void {
    const datagram = hepDatagram(message, captureId);
    const socket = socketOf(family);
    if (datagram === null || socket.getSendQueueSize() > MOST_QUEUED_BYTES) {
      dropped++;
      return;
    }
    socket.send(datagram, collector.port, address, (error) => {
      if (error) dropped++;
      else sent++;
    });
  }

  function send(message: CallMessage): void {
    try {
      if (closing.signal.aborted) return;
      if (target !== null) post(message, target);
      else if (early.length < MOST_EARLY) early.push(message);
      else dropped++;
    } catch {
      dropped++;
    }
  }

  async function resolve(): Promise<void> {
    try {
      target = await lookup(collector.host);
    } catch (error) {
      logger.warn({ err: error }, 'HEP collector cannot be resolved');
      return;
    }
    const messages = early;
    early = [];
    for (const message of messages) send(message);
  }

  void repeat(resolve, { everyMs: RESOLVE_EVERY_MS, signal: closing.signal });
  return {
    send,
    dump: () => ({ sent, dropped }),
    async [Symbol.asyncDispose]() {
      closing.abort();
      const closed = [...sockets.values()].map((socket) => new Promise<void>((done) => socket.close(() => done())));
      await Promise.all(closed);
    },
  };
}

const RESOLVE_EVERY_MS = 60_000;
const MOST_EARLY = 1_000;
const MOST_QUEUED_BYTES = 1_000_000;
