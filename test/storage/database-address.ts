import type { NetConnectOpts } from 'node:net';
import { socketPath } from '../../storage/embedded/server-address.ts';

/** Where a proxy reaches the server of a database's URL. */
export function addressOf(databaseUrl: string): NetConnectOpts {
  const { searchParams, hostname, port } = new URL(databaseUrl);
  const socketFolder = searchParams.get('host');
  return socketFolder === null ? { host: hostname, port: Number(port) } : { path: socketPath(socketFolder) };
}

/** URL of the same database through a proxy at a port of 127.0.0.1. */
export function throughPort(databaseUrl: string, port: number): string {
  const url = new URL(databaseUrl);
  url.searchParams.delete('host');
  url.host = `127.0.0.1:${port}`;
  return url.href;
}
