import { isDeepStrictEqual } from 'node:util';
import { TandemError } from '../../machines/errors.ts';
import type { MediaEncryption } from '../../machines/events.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { callIsLive } from './call-row.ts';
import { isUuid } from './identifiers.ts';
import { jsonb } from './json-columns.ts';
import { claimNumbers } from './number-claims.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import type { ReachabilityReason, ReachabilityState } from './reachability.ts';
import type { GatewayAddresses, GatewayHealth, StoredGateway, TrunkTransport } from './trunk-gateways.ts';
import { UNKNOWN_HEALTH } from './trunk-health.ts';

export type ReferPermission = 'none' | 'agent' | 'both';

export interface TrunkRow {
  id: string;
  ownerWorkspaceId: string | null;
  name: string;
  sipUri: string;
  transport: TrunkTransport;
  username: string | null;
  /** Sealed by `createSecretBox`. */
  passwordEncrypted: Buffer | null;
  register: boolean;
  codecs: string[];
  mediaEncryption: MediaEncryption;
  channels: number;
  /** `none`: no OPTIONS are sent, and placements are never rejected because the carrier seems down. */
  healthMode: 'options' | 'none';
  healthIntervalS: number;
  /** Legs that may transfer calls with REFER. */
  refer: ReferPermission;
  /**
   * User name that authenticates inbound calls from other addresses. Null: they must come from the trunk's addresses.
   */
  inboundUsername: string | null;
  /** Sealed by `createSecretBox`. */
  inboundPasswordEncrypted: Buffer | null;
  reachability: ReachabilityState;
  /** Null while `unknown`. */
  reachabilitySince: Date | null;
  reachabilityReason: ReachabilityReason;
  /** As stored; use `gatewaysOf`. */
  gateways: StoredGateway[];
  gatewayHealth: GatewayHealth[];
  /** Null or absent: no server registers it. */
  registrationState?: 'registering' | 'registered' | 'failed' | null;
  registeredAt?: Date | null;
  registrationExpiresAt?: Date | null;
  registrationError?: string | null;
  /** Empty allows every destination. */
  allowedPrefixes: string[];
  status: 'active' | 'disabled';
  /** Saved by the requesting workspace, or the trunk's own. */
  defaultCallerId: string | null;
  pricePerMinuteNano: bigint;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
  /** Numbers from the carrier, rented or not. */
  numbers: string[];
  /** Those of them that are only claims. */
  unverifiedNumbers: string[];
}

/** A trunk without its numbers, which dialing does not need. */
export type DialedTrunk = Omit<TrunkRow, 'numbers' | 'unverifiedNumbers'>;

/** Identifies the carrier whose health decides about a placement. */
export type TrunkLine = Pick<TrunkRow, 'id' | 'healthMode'> & GatewayAddresses;

export interface CreateTrunkInput {
  id: string;
  /** Workspace that configures the trunk and may use it from the start. */
  workspaceId: string;
  name: string;
  sipUri: string;
  transport: TrunkTransport;
  username: string | null;
  passwordEncrypted: Buffer | null;
  register: boolean;
  codecs: string[];
  mediaEncryption: MediaEncryption;
  channels: number;
  /** The first is at `sipUri`. Default: only that one. */
  gateways?: StoredGateway[];
  /** Default `options`. */
  healthMode?: 'options' | 'none';
  /** Default 30. */
  healthIntervalS?: number;
  /** Default `none`. */
  refer?: ReferPermission;
  /** Default: null. */
  inboundUsername?: string | null;
  inboundPasswordEncrypted?: Buffer | null;
  allowedPrefixes: string[];
  numbers: string[];
  defaultCallerId: string | null;
  pricePerMinuteNano: bigint;
  now: Date;
}

/** @throws TandemError `VALIDATION_FAILED`, `NUMBER_NOT_AVAILABLE` if a number is verified for another trunk */
export async function createTrunk(sql: SqlOrTx, input: CreateTrunkInput): Promise<TrunkRow> {
  return await inTransaction(sql, async (tx) => {
    const { workspaceId, numbers, now, gateways = [], ...fields } = input;
    const stored = { ...fields, gateways: jsonb(tx, gateways) };
    const row = { ...stored, ownerWorkspaceId: workspaceId, createdAt: now, updatedAt: now };
    await tx`insert into trunks ${tx(row)}`;
    requireAccount(input);
    await shareTrunk(tx, { trunkId: input.id, workspaceId, now });
    await claimNumbers(tx, { trunkId: input.id, workspaceId, numbers, now });
    return (await getTrunk(tx, { id: input.id, workspaceId }))!;
  });
}

/** Allows another workspace to call over the trunk. Idempotent. */
export async function shareTrunk(
  sql: SqlOrTx,
  { trunkId, workspaceId, now }: { trunkId: string; workspaceId: string; now: Date },
): Promise<void> {
  await sql`
    insert into trunk_workspaces (trunk_id, workspace_id, created_at) values (${trunkId}, ${workspaceId}, ${now})
    on conflict do nothing`;
}

export async function listTrunks(
  sql: SqlOrTx,
  { workspaceId }: { workspaceId: string },
  page: Page,
): Promise<PageOf<TrunkRow>> {
  const rows = await sql<TrunkRow[]>`
    ${selectTrunks(sql, workspaceId)} order by t.created_at, t.id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from trunks t join trunk_workspaces tw on tw.trunk_id = t.id
    where tw.workspace_id = ${workspaceId} and t.deleted_at is null`;
  return { rows, total: count?.total ?? 0 };
}

/** Finds a trunk that the workspace may use; null if there is none. */
export async function getTrunk(
  sql: SqlOrTx,
  { id, workspaceId }: { id: string; workspaceId: string },
): Promise<TrunkRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<TrunkRow[]>`${selectTrunks(sql, workspaceId)} and t.id = ${id}`;
  return row ?? null;
}

/** Finds a trunk of any workspace, even a deleted one, for a running call. */
export async function getTrunkById(sql: SqlOrTx, id: string): Promise<DialedTrunk | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<DialedTrunk[]>`select * from trunks where id = ${id}`;
  return row ?? null;
}

/** Returns all usable trunks, for the SIP gateway at its start. */
export async function listActiveTrunks(sql: SqlOrTx): Promise<TrunkRow[]> {
  return await sql<TrunkRow[]>`
    select t.*, array(select e164 from numbers n where n.trunk_id = t.id order by e164) as numbers,
      array(select e164 from numbers n where n.trunk_id = t.id and n.verified_at is null order by e164)
        as unverified_numbers
    from trunks t where t.status = 'active' and t.deleted_at is null order by t.created_at, t.id`;
}

export interface TrunkPatch {
  name?: string;
  sipUri?: string;
  transport?: TrunkTransport;
  username?: string | null;
  passwordEncrypted?: Buffer | null;
  register?: boolean;
  codecs?: string[];
  mediaEncryption?: MediaEncryption;
  channels?: number;
  gateways?: StoredGateway[];
  healthMode?: 'options' | 'none';
  healthIntervalS?: number;
  refer?: ReferPermission;
  inboundUsername?: string | null;
  inboundPasswordEncrypted?: Buffer | null;
  allowedPrefixes?: string[];
  status?: 'active' | 'disabled';
  defaultCallerId?: string | null;
  pricePerMinuteNano?: bigint;
  /** Complete list: new numbers are added, missing ones leave the inventory unless rented. */
  numbers?: string[];
}

/**
 * Updates a trunk. Only its owner may.
 * @throws TandemError `TRUNK_NOT_FOUND`, `FORBIDDEN`, `VALIDATION_FAILED`, `NUMBER_NOT_AVAILABLE`, `NUMBER_IN_USE` (a
 * rented number is missing)
 */
export async function updateTrunk(
  sql: SqlOrTx,
  { id, workspaceId, patch, now }: { id: string; workspaceId: string; patch: TrunkPatch; now: Date },
): Promise<TrunkRow> {
  return await inTransaction(sql, async (tx) => {
    const before = await lockOwnTrunk(tx, { id, workspaceId });
    const { numbers, gateways, ...fields } = patch;
    const changes = {
      ...Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined)),
      ...(gateways && { gateways: jsonb(tx, gateways) }),
      ...(isUnwatchedBy(patch, before) && { ...UNKNOWN_HEALTH, gatewayHealth: tx.json([]) }),
      updatedAt: now,
    };
    if (patch.register !== undefined || patch.username !== undefined) requireAccount({ ...before, ...changes });
    await tx`update trunks set ${tx(changes)} where id = ${id}`;
    if (numbers !== undefined) {
      await claimNumbers(tx, { trunkId: id, workspaceId, numbers, now });
      const removed = await tx<{ e164: string }[]>`
        delete from numbers where trunk_id = ${id} and status <> 'assigned' and not e164 = any(${numbers})`;
      const kept = await tx`
        select 1 from numbers where trunk_id = ${id} and status = 'assigned' and not e164 = any(${numbers}) limit 1`;
      if (kept.length > 0) {
        throw new TandemError('NUMBER_IN_USE', 'A number missing from the list is rented. Release it first.', {
          details: { removed: removed.count },
        });
      }
    }
    return (await getTrunk(tx, { id, workspaceId }))!;
  });
}

/**
 * Deletes a trunk with its numbers, rented or not. Its calls stay readable.
 * @throws TandemError `TRUNK_NOT_FOUND`, `FORBIDDEN`, `TRUNK_IN_USE` while a live call uses it
 */
export async function deleteTrunk(
  sql: SqlOrTx,
  { id, workspaceId, now }: { id: string; workspaceId: string; now: Date },
): Promise<void> {
  await inTransaction(sql, async (tx) => {
    await lockOwnTrunk(tx, { id, workspaceId });
    const live = await tx`
      select 1 from calls where trunk_id = ${id} and ${callIsLive(tx)} limit 1`;
    if (live.length > 0)
      throw new TandemError('TRUNK_IN_USE', 'The trunk has live calls. Delete it when they have ended.');
    await tx`update trunks set deleted_at = ${now}, updated_at = ${now}, status = 'disabled' where id = ${id}`;
    await tx`delete from numbers where trunk_id = ${id}`;
    await tx`delete from trunk_probes where trunk_id = ${id}`;
  });
}

/**
 * Saves a workspace's default caller ID for the number's trunk.
 * @throws TandemError `CALLER_ID_NOT_OWNED` if the workspace has not rented the number, `DIALER_NOT_PROVISIONED` if it
 * has no trunk
 */
export async function setDefaultCallerId(
  sql: SqlOrTx,
  { workspaceId, e164 }: { workspaceId: string; e164: string },
): Promise<{ trunkId: string; defaultCallerId: string }> {
  const provisioned = await hasTrunk(sql, workspaceId);
  if (!provisioned)
    throw new TandemError(
      'DIALER_NOT_PROVISIONED',
      'The workspace has no active trunk. Create one with POST /dialer/trunks.',
    );
  const [row] = await sql<{ trunkId: string; defaultCallerId: string }[]>`
    update trunk_workspaces tw set default_caller_id = n.e164 from numbers n
    where n.e164 = ${e164} and n.workspace_id = ${workspaceId} and n.status = 'assigned'
      and tw.trunk_id = n.trunk_id and tw.workspace_id = ${workspaceId}
    returning tw.trunk_id, tw.default_caller_id`;
  if (!row) throw new TandemError('CALLER_ID_NOT_OWNED', 'The workspace does not rent this number.');
  return row;
}

/** Gate T: the workspace may use an active trunk. */
export async function hasTrunk(sql: SqlOrTx, workspaceId: string): Promise<boolean> {
  const rows = await sql`
    select 1 from trunks t join trunk_workspaces tw on tw.trunk_id = t.id
    where tw.workspace_id = ${workspaceId} and t.status = 'active' and t.deleted_at is null limit 1`;
  return rows.length > 0;
}

function selectTrunks(sql: SqlOrTx, workspaceId: string) {
  return sql`
    select t.id, t.owner_workspace_id, t.name, t.sip_uri, t.transport, t.username, t.password_encrypted, t.register,
      t.codecs, t.media_encryption, t.channels, t.allowed_prefixes, t.status, t.health_mode, t.health_interval_s, t.refer,
      t.inbound_username, t.inbound_password_encrypted,
      t.reachability, t.reachability_since, t.reachability_reason, t.gateways, t.gateway_health,
      coalesce(tw.default_caller_id, t.default_caller_id) as default_caller_id,
      t.price_per_minute_nano, t.created_at, t.updated_at, t.deleted_at,
      r.state as registration_state, r.registered_at, r.expires_at as registration_expires_at,
      r.last_error as registration_error,
      array(select e164 from numbers n where n.trunk_id = t.id order by e164) as numbers,
      array(select e164 from numbers n where n.trunk_id = t.id and n.verified_at is null order by e164)
        as unverified_numbers
    from trunks t join trunk_workspaces tw on tw.trunk_id = t.id
      left join trunk_registrations r on r.trunk_id = t.id and t.register and t.status = 'active'
    where tw.workspace_id = ${workspaceId} and t.deleted_at is null`;
}

/** @throws TandemError `VALIDATION_FAILED` */
function requireAccount({ register, username }: { register: boolean; username: string | null }): void {
  if (!register || username !== null) return;
  const message = 'must be set to register with the carrier';
  throw new TandemError('VALIDATION_FAILED', `username ${message}.`, { details: [{ path: 'username', message }] });
}

/** Whether a change invalidates the known health: another address, or disabling, after which it becomes outdated. */
function isUnwatchedBy({ sipUri, transport, gateways, status }: TrunkPatch, before: TrunkRow): boolean {
  if (status === 'disabled') return true;
  if (gateways !== undefined && !isDeepStrictEqual(gateways, before.gateways)) return true;
  return (sipUri ?? before.sipUri) !== before.sipUri || (transport ?? before.transport) !== before.transport;
}

async function lockOwnTrunk(tx: Tx, { id, workspaceId }: { id: string; workspaceId: string }): Promise<TrunkRow> {
  // Lock before reading, because it may be deleted during the wait.
  if (isUuid(id)) await tx`select id from trunks where id = ${id} for no key update`;
  const trunk = await getTrunk(tx, { id, workspaceId });
  if (!trunk) throw new TandemError('TRUNK_NOT_FOUND', 'No trunk in this workspace has this id.');
  if (trunk.ownerWorkspaceId !== workspaceId) {
    throw new TandemError(
      'FORBIDDEN',
      'This trunk is shared with the workspace. Only its own workspace can change it.',
    );
  }
  return trunk;
}
