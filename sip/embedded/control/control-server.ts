import { once } from 'node:events';
import net from 'node:net';
import type { Application } from '../core/application.ts';
import type { LocalAddress } from '../core/outgoing.ts';
import type { SipCore } from '../core/sip-core.ts';
import { ControlSession } from './control-session.ts';

/** Subscriptions to requests. The newest session for a verb gets it, because it is certainly alive. */
export class Routes {
  readonly #byVerb = new Map<string, ControlSession[]>();

  set(session: ControlSession, verb: string, isWanted: boolean): void {
    const others = (this.#byVerb.get(verb) ?? []).filter((each) => each !== session);
    this.#byVerb.set(verb, isWanted ? [session, ...others] : others);
  }

  forget(session: ControlSession): void {
    for (const [verb, sessions] of this.#byVerb) {
      this.#byVerb.set(
        verb,
        sessions.filter((each) => each !== session),
      );
    }
  }

  /** Verbs with a subscriber. */
  dump(): string[] {
    return [...this.#byVerb].filter(([, sessions]) => sessions.length > 0).map(([verb]) => verb);
  }

  find(method: string): Application | null {
    return this.#byVerb.get(method.toLowerCase())?.find((session) => session.isOpen) ?? null;
  }
}

export interface ControlServer {
  readonly port: number;
  close(): Promise<void>;
  dump(): unknown;
}

/** Opens the port for drachtio-srf. Loopback only, because the secret is not encrypted. */
export async function openControlServer(options: {
  secret: string;
  core: SipCore;
  local: LocalAddress;
  hostPorts: string;
  routes: Routes;
  onFault: (error: unknown) => void;
}): Promise<ControlServer> {
  const sessions = new Set<ControlSession>();
  const server = net.createServer({ noDelay: true }, (socket) => {
    if (sessions.size >= MAX_SESSIONS) {
      socket.destroy();
      return;
    }
    const session = new ControlSession({
      ...options,
      socket,
      onRoute: (from, verb, isWanted) => options.routes.set(from, verb, isWanted),
      onClosed: (closed) => {
        sessions.delete(closed);
        options.routes.forget(closed);
      },
    });
    sessions.add(session);
  });
  server.listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  server.on('error', () => {});
  return {
    port: (server.address() as net.AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const ended = [...sessions].map((session) => {
        session.close();
        return session.closed;
      });
      // Do not wait for a client that stopped reading.
      const timer = setTimeout(() => {
        for (const session of sessions) session.destroy();
      }, CLOSE_GRACE_MS);
      // The server counts a connection as closed before its session is notified.
      await Promise.all([closed, ...ended]);
      clearTimeout(timer);
    },
    dump: () => ({ sessions: sessions.size, routes: options.routes.dump() }),
  };
}

const CLOSE_GRACE_MS = 500;
const MAX_SESSIONS = 32;
