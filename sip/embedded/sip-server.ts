import { networkInterfaces } from 'node:os';
import { containedClock, systemClock } from './clock.ts';
import { openControlServer, Routes } from './control/control-server.ts';
import type { LocalAddress } from './core/outgoing.ts';
import { SipCore } from './core/sip-core.ts';
import { type SipTimers, sipTimers } from './sip-timers.ts';
import { openNetwork } from './transport/network.ts';
import { createResolver } from './transport/next-hop.ts';
import { type TransportName, uriHost } from './transport/remote.ts';

export interface SipServerOptions {
  sipHost: string;
  /** 0 for any. */
  sipPort: number;
  transports: readonly TransportName[];
  /** Address in Via and Contact when it is not `sipHost`: behind NAT, or when `sipHost` is a wildcard. */
  advertisedHost?: string;
  secret: string;
  timers?: Partial<SipTimers>;
}

export interface SipServer {
  readonly controlPort: number;
  readonly sipPort: number;
  close(): Promise<void>;
  dump(): unknown;
}

/**
 * The whole server in the current thread: SIP sockets, user agent, control port. `onFault` hears of errors that one
 * message or command caused, which was dropped.
 *
 * @throws the error of a bind.
 */
export async function openSipServer(options: SipServerOptions, onFault: (error: unknown) => void): Promise<SipServer> {
  if (options.secret === '') throw new RangeError('The secret of the SIP server must not be empty');
  if (options.transports.length === 0) throw new RangeError('The SIP server needs at least one transport');
  const routes = new Routes();
  const local: LocalAddress = { host: options.advertisedHost ?? reachableHost(options.sipHost), port: options.sipPort };
  // The core needs the port that the network gets, and the network a core to hand messages to.
  const network = await openNetwork({
    host: options.sipHost,
    port: options.sipPort,
    transports: options.transports,
    listener: {
      onMessage: (message, source) => core.onMessage(message, source),
      onUnreachable: (remote) => core.onUnreachable(remote),
    },
    onBroken: (error, source) => core.onBroken(error, source),
    onFault,
  });
  local.port = network.port;
  const core = new SipCore({
    network,
    local,
    transports: options.transports,
    timers: sipTimers(options.timers),
    resolve: createResolver(),
    route: (method) => routes.find(method),
    clock: containedClock(systemClock, onFault),
  });
  const hostPorts = options.transports.map((name) => `${name}/${uriHost(local.host)}:${local.port}`).join(',');
  const control = await openControlServer({ secret: options.secret, core, local, hostPorts, routes, onFault });
  return {
    controlPort: control.port,
    sipPort: network.port,
    async close() {
      // Closing the sessions hangs up their calls; the BYEs leave before the sockets close.
      await control.close();
      core.stop();
      await network.close();
    },
    dump: () => ({ core: core.dump(), network: network.dump(), control: control.dump() }),
  };
}

/** A wildcard cannot be written into a Contact. */
function reachableHost(sipHost: string): string {
  if (sipHost !== '0.0.0.0' && sipHost !== '::') return sipHost;
  const family = sipHost === '::' ? 'IPv6' : 'IPv4';
  for (const addresses of Object.values(networkInterfaces())) {
    const found = addresses?.find((each) => !each.internal && each.family === family);
    if (found) return found.address;
  }
  return family === 'IPv4' ? '127.0.0.1' : '::1';
}
