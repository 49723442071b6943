import type { Sql } from '../storage/database.ts';
import { type Finding, ok, warn } from './finding.ts';

interface TrunkRow {
  name: string;
  sipUri: string;
  transport: string;
  reachability: string;
  reachabilitySince: Date | null;
  reachabilityReason: string;
  register: boolean;
  registrationState: string | null;
  lastError: string | null;
}

/**
 * Reports the last known reachability and registration of the active trunks. `isRunning`: the server runs now, so what
 * it stored is current. Without a readable database there are no findings; another check reports that.
 */
export async function checkTrunks(sql: Sql, { isRunning }: { isRunning: boolean }): Promise<Finding[]> {
  const trunks = await sql<TrunkRow[]>`
    select t.name, t.sip_uri, t.transport, t.reachability, t.reachability_since, t.reachability_reason, t.register,
      r.state as registration_state, r.last_error
    from trunks t left join trunk_registrations r on r.trunk_id = t.id
    where t.deleted_at is null and t.status = 'active' order by t.name, t.id limit 1000`.catch(() => []);
  const asOf = isRunning ? '' : ' when the server ran last';
  const failed = trunks.filter(({ register, registrationState }) => register && registrationState === 'failed');
  return [...trunks.map((trunk) => reachabilityOf(trunk, asOf)), ...failed.map(registrationOf)];
}

function registrationOf({ name, lastError }: TrunkRow): Finding {
  const advice = 'Check the user name, the password and sip_uri of the trunk.';
  return warn(`registration of ${name}`, `The carrier does not accept it: ${lastError}.`, advice);
}

function reachabilityOf(trunk: TrunkRow, asOf: string): Finding {
  const check = `carrier of ${trunk.name}`;
  const reason = trunk.reachabilityReason.replaceAll('_', ' ');
  const since = trunk.reachabilitySince?.toISOString();
  if (trunk.reachability === 'up') return ok(check, `up since ${since}${asOf}: ${reason}`);
  if (trunk.reachability === 'unknown') return ok(check, `not known${asOf}: ${reason}`);
  const message = `It has not responded since ${since}${asOf}: ${reason}.`;
  const transport = trunk.transport.toUpperCase();
  const advice = `Check ${trunk.sipUri} over ${transport}, your firewall, and that the carrier accepts your address.`;
  return warn(check, message, advice);
}
