import type { Sql } from '../storage/database.ts';
import { type Finding, ok, warn } from './finding.ts';

/** Warns about encrypted media whose keys are sent in SDP without TLS. */
export async function checkMediaEncryption(sql: Sql): Promise<Finding[]> {
  const trunks = await sql<{ name: string; transport: string; mediaEncryption: string }[]>`
    select name, transport, media_encryption from trunks
    where deleted_at is null and status = 'active' and media_encryption <> 'none' order by name limit 1000`.catch(
    () => [],
  );
  return trunks.map(({ name, transport, mediaEncryption }) => {
    const check = `media encryption of ${name}`;
    if (transport === 'tls') return ok(check, `${mediaEncryption}, with keys that TLS protects`);
    const message = `${mediaEncryption}, but its keys travel readable in SIP over ${transport.toUpperCase()}.`;
    return warn(check, message, 'Set its transport to tls, or reach the carrier over a VPN or a private network.');
  });
}
