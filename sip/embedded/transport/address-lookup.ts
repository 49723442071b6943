import { lookup } from 'node:dns';
import { isIP } from 'node:net';

/**
 * The `lookup` of a socket that sends to addresses. Node's own answers a tick later even then, so that what is sent
 * over a connected socket would overtake what was sent over an unconnected one before it.
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
