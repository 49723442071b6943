import path from 'node:path';

/** Where the embedded Postgres listens: at a Unix socket, or, with `socketFolder` null, at a port of 127.0.0.1. */
export interface ServerAddress {
  readonly socketFolder: string | null;
  /** Also part of the socket's name. */
  readonly port: number;
}

const SOCKET_PORT = 5432;
/** Longest `sun_path` on macOS. Linux allows 107 bytes. */
const MOST_PATH_BYTES = 103;

/**
 * The address of a socket in the folder; null on Windows and if its path is too long. A query through a socket takes a
 * third less CPU time than through TCP, and other users of the machine cannot connect.
 */
export function socketIn(folder: string): ServerAddress | null {
  if (process.platform === 'win32' || Buffer.byteLength(socketPath(folder)) > MOST_PATH_BYTES) return null;
  return { socketFolder: folder, port: SOCKET_PORT };
}

export function socketPath(folder: string): string {
  return path.join(folder, `.s.PGSQL.${SOCKET_PORT}`);
}

/** URL of the database that is named as its owner, in the form of libpq. The password must need no quoting. */
export function databaseUrl(
  { socketFolder, port }: ServerAddress,
  { user, password }: { user: string; password: string },
): string {
  if (socketFolder === null) return `postgres://${user}:${password}@127.0.0.1:${port}/${user}`;
  return `postgres://${user}:${password}@localhost:${port}/${user}?host=${encodeURIComponent(socketFolder)}`;
}
