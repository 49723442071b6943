import { getDefaultAutoSelectFamilyAttemptTimeout, setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';

/**
 * Node gives up an address of a host after 250 ms if others follow. A distant server then cannot be reached from a
 * machine without IPv6.
 */
const CONNECT_ATTEMPT_MS = 1_000;

/**
 * Replaces the transport of the global `fetch` in this thread. The one in Node 24.21 ends the process with
 * `assert(!this.paused)` if a server closes its connection while the reader of a body is behind
 * (https://github.com/nodejs/undici/issues/5360). Obeys the proxy variables if `NODE_USE_ENV_PROXY` is 1, as Node does.
 * All connections of this thread get at least a second for each address of their host. Idempotent. Call it before the
 * first `fetch` with a streamed body.
 */
export async function replaceFetchTransport(): Promise<void> {
  replaced ??= replace();
  await replaced;
}

let replaced: Promise<void> | null = null;

async function replace(): Promise<void> {
  // `--network-family-autoselection-attempt-timeout` in NODE_OPTIONS may be longer.
  setDefaultAutoSelectFamilyAttemptTimeout(Math.max(CONNECT_ATTEMPT_MS, getDefaultAutoSelectFamilyAttemptTimeout()));
  const { Agent, EnvHttpProxyAgent, setGlobalDispatcher } = await import('undici');
  setGlobalDispatcher(process.env.NODE_USE_ENV_PROXY === '1' ? new EnvHttpProxyAgent() : new Agent());
}
