import { networkInterfaces } from 'node:os';
import { uriHost } from '../message/index.ts';
import { callMessages } from '../trace/call-messages.ts';
import { messageBatches } from '../trace/message-batches.ts';
import type { WireMessage } from '../trace/wire-message.ts';
import { containedClock, systemClock } from './clock.ts';
import { openControlServer, Routes } from './control/control-server.ts';
import type { LocalAddress } from './core/outgoing.ts';
import { SipCore } from './core/sip-core.ts';
import { type SipTimers, sipTimers } from './sip-timers.ts';
import { openNetwork } from './transport/network.ts';
import { createResolver } from './transport/next-hop.ts';
import type { Remote, TransportName } from './transport/remote.ts';
import type { DroppedMessages } from './transport/source-limits.ts';
import type { TlsSettings } from './transport/tls-security.ts';

/** Described at `EmbeddedSipServerOptions`. */
export interface SipServerOptions {
  sipHost: string;
  sipPort: number;
  transports: readonly ('udp' | 'tcp')[];
  tls?: TlsSettings;
  advertisedHost?: string;
  secret: string;
  messagesPerSecond?: number;
  timers?: Partial<SipTimers>;
}

export interface SipServer {
  readonly controlPort: number;
  readonly sipPort: number;
  /** Null: no TLS listener. */
  readonly tlsPort: number | null;
  close(): Promise<void>;
  dump(): unknown;
}

/** Described at `EmbeddedSipServerOptions`. */
export interface SipServerListener {
  onFault: (error: unknown) => void;
  onMessages?: (messages: WireMessage[]) => void;
  onUntrusted: (name: string, reason: string) => void;
  onLimited: (dropped: DroppedMessages) => void;
}

/** A carrier sends about ten messages per call; those of known calls always pass. */
const MESSAGES_PER_SECOND = 500;

/**
 * Opens the server in the current thread: SIP sockets, user agent, control port.
 *
 * @throws the error of a bind, or of an unusable certificate or key.
 */
export async function openSipServer(
  options: SipServerOptions,
  { onFault, onMessages, onUntrusted, onLimited }: SipServerListener,
): Promise<SipServer> {
  if (options.secret === '') throw new RangeError('The secret of the SIP server must not be empty');
  if (options.transports.length === 0) throw new RangeError('The SIP server needs at least one transport');
  const routes = new Routes();
  const host = options.advertisedHost ?? reachableHost(options.sipHost);
  const local: LocalAddress = { host, port: options.sipPort, tlsPort: null };
  const clock = containedClock(systemClock, onFault);
  const trace = onMessages === undefined ? null : traceOf({ local, onMessages, onFault });
  // Core and network need each other: the core the bound port, the network a message handler.
  const network = await openNetwork({
    host: options.sipHost,
    port: options.sipPort,
    transports: options.transports,
    tls: options.tls ?? null,
    messagesPerSecond: options.messagesPerSecond ?? MESSAGES_PER_SECOND,
    onUntrusted,
    onLimited,
    listener: {
      onMessage: (message, source) => core.onMessage(message, source),
      isExpected: (message) => core.isExpected(message),
      onUnreachable: (remote) => core.onUnreachable(remote),
    },
    onBroken: (error, source) => core.onBroken(error, source),
    onFault,
    clock,
    ...(trace && { onSeen: trace.see }),
  });
  local.port = network.port;
  local.tlsPort = network.tlsPort;
  const transports: readonly TransportName[] = [...options.transports, ...(options.tls ? (['tls'] as const) : [])];
  const core = new SipCore({
    network,
    local,
    transports,
    timers: sipTimers(options.timers),
    resolve: createResolver(options.sipHost),
    route: (method) => routes.find(method),
    clock,
  });
  const listening = options.transports.map((name) => `${name}/${uriHost(local.host)}:${local.port}`);
  if (local.tlsPort !== null) listening.push(`tls/${uriHost(local.host)}:${local.tlsPort}`);
  const hostPorts = listening.join(',');
  const control = await openControlServer({ secret: options.secret, core, local, hostPorts, routes, onFault });
  return {
    controlPort: control.port,
    sipPort: network.port,
    tlsPort: network.tlsPort,
    async close() {
      // Closing the sessions hangs up their calls; the BYEs are sent before the sockets close.
      await control.close();
      core.stop();
      await network.close();
      trace?.flush();
    },
    dump: () => ({ core: core.dump(), network: network.dump(), control: control.dump() }),
  };
}

/** Traces the messages of calls. Its errors do not affect calls. */
function traceOf({
  local,
  onMessages,
  onFault,
}: Required<Omit<SipServerListener, 'onUntrusted' | 'onLimited'>> & { local: LocalAddress }) {
  const pick = callMessages();
  const batches = messageBatches(onMessages);
  return {
    see(direction: WireMessage['direction'], bytes: Buffer, { transport, host, port }: Remote): void {
      try {
        const message = pick({
          atMs: Date.now(),
          direction,
          transport,
          local: { host: local.host, port: transport === 'tls' ? (local.tlsPort ?? local.port) : local.port },
          remote: { host, port },
          bytes,
        });
        if (message !== null) batches.add(message);
      } catch (error) {
        onFault(error);
      }
    },
    flush: () => batches.flush(),
  };
}

/** A wildcard is invalid in a Contact. */
function reachableHost(sipHost: string): string {
  if (sipHost !== '0.0.0.0' && sipHost !== '::') return sipHost;
  const family = sipHost === '::' ? 'IPv6' : 'IPv4';
  for (const addresses of Object.values(networkInterfaces())) {
    const found = addresses?.find((each) => !each.internal && each.family === family);
    if (found) return found.address;
  }
  return family === 'IPv4' ? '127.0.0.1' : '::1';
}
