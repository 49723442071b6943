import { lookup } from 'node:dns';
import { isIP } from 'node:net';

/**
 * Synchronous `lookup` for sockets that send to IP addresses. Node's own answers a tick later even then, so a connected
 * socket would overtake an earlier message of an unconnected one.
 */
export function addressLookup(
  host: string,
  family: unknown,
  done: (error: NodeJS.ErrnoException | null, address: string, family: number) => void,
): void {
  const own = isIP(host);
  if (own !== 0) done(null, host, own);
  else lookup(host, { family: family === 6 ? 6 : 4 }, done);
}
