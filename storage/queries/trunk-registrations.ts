import { inTransaction, type SqlOrTx } from '../database.ts';
import type { TrunkRow } from './trunks.ts';

export interface RegistrationStatus {
  /** `registering`: no response yet. */
  state: 'registering' | 'registered' | 'failed';
  /** First success since the last failure. */
  registeredAt: Date | null;
  /** When the registration expires at the carrier without a refresh. */
  expiresAt: Date | null;
  lastError: string | null;
}

/** Time without renewal after which another server registers the trunks. */
const LEASE_S = 30;

/**
 * Leases trunks to register that no other server has, renews this server's leases and returns all of them. Uses the
 * database's clock.
 */
export async function leaseRegistrations(sql: SqlOrTx, server: string): Promise<TrunkRow[]> {
  return await inTransaction(sql, async (tx) => {
    await tx`
      insert into trunk_registrations as r (trunk_id, server, leased_until)
      select id, ${server}, now() + make_interval(secs => ${LEASE_S}) from trunks
      where register and status = 'active' and deleted_at is null order by id
      on conflict (trunk_id) do update set server = excluded.server, leased_until = excluded.leased_until
      where r.leased_until < now() or (r.server = ${server} and r.leased_until < now() + make_interval(secs => ${LEASE_S / 2}))`;
    return await tx<TrunkRow[]>`
      select t.*, '{}'::text[] as numbers, '{}'::text[] as unverified_numbers from trunks t join trunk_registrations r on r.trunk_id = t.id
      where r.server = ${server} and t.register and t.status = 'active' and t.deleted_at is null order by t.id`;
  });
}

/** No effect if another server has taken over. */
export async function recordRegistration(
  sql: SqlOrTx,
  { trunkId, server, status }: { trunkId: string; server: string; status: RegistrationStatus },
): Promise<void> {
  const { state, registeredAt, expiresAt, lastError } = status;
  await sql`
    update trunk_registrations set state = ${state}, registered_at = ${registeredAt}, expires_at = ${expiresAt},
      last_error = ${lastError}
    where trunk_id = ${trunkId} and server = ${server}`;
}

/** Ends the lease, so that another server may register the trunk at once. */
export async function releaseRegistration(
  sql: SqlOrTx,
  { trunkId, server }: { trunkId: string; server: string },
): Promise<void> {
  await sql`delete from trunk_registrations where trunk_id = ${trunkId} and server = ${server}`;
}
