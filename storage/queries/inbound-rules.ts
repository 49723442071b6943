import type { LegEndpoint } from '../../machines/events.ts';
import type { SqlOrTx } from '../database.ts';
import type { GatewayAddresses } from './trunk-gateways.ts';
import type { TrunkRow } from './trunks.ts';

export type InboundRule = InboundDecision | AskRule;

export type InboundDecision = { action: 'reject' } | ForwardRule;

/** The integrator's URL decides about each call. */
export interface AskRule {
  action: 'ask';
  url: string;
  /** Secret that signs the question; sealed like callback secrets, base64. */
  secretSealed: string;
  secretLast4: string;
  /** Used without a valid response in time. */
  fallback: InboundDecision;
}

/** Connects the caller with an endpoint in the agent's place. */
export interface ForwardRule {
  action: 'forward';
  endpoint: LegEndpoint;
  ringTimeoutS: number;
  maxDurationS: number;
  record: boolean;
  transcribe: boolean;
  /** Played to the endpoint on answering; plain text or SSML. Null: nothing. */
  announce: string | null;
  /** Null: the default voice. */
  voiceId: string | null;
  /** Receives the callback of the finished call. Null or absent: none. */
  callbackUrl?: string | null;
  /** Sealed, base64. Null or absent: callbacks are not signed. */
  callbackSecretSealed?: string | null;
}

/** Source of the decision about an inbound call, for its first event. */
export interface InboundDecider {
  decided_by: 'rule' | 'url' | 'fallback';
  /** Reason that the URL did not decide; null if it did or was not asked. */
  fault: string | null;
  /** Response time of the URL; null if it was not asked. */
  after_ms: number | null;
}

/** A rented number. */
export interface CalledNumber {
  e164: string;
  workspaceId: string;
  trunkId: string;
  trunk: GatewayAddresses &
    Pick<
      TrunkRow,
      'ownerWorkspaceId' | 'codecs' | 'mediaEncryption' | 'inboundUsername' | 'inboundPasswordEncrypted'
    > & {
      /** User part of the Contact that the trunk registers. Null: it does not register. */
      contactUser: string | null;
    };
  inbound: InboundRule | null;
}

/** Columns of `CalledNumber['trunk']`, from trunks as `t`. */
export function calledTrunk(sql: SqlOrTx) {
  return sql`t.sip_uri, t.transport, t.gateways, t.owner_workspace_id, t.codecs, t.media_encryption, t.inbound_username,
    t.inbound_password_encrypted, case when t.register then t.username end as contact_user`;
}

/** Returns the rented numbers among these on active trunks. A rented number is on one trunk only. */
export async function findCalledNumbers(sql: SqlOrTx, e164s: readonly string[]): Promise<CalledNumber[]> {
  const rows = await sql<(Omit<CalledNumber, 'trunk'> & CalledNumber['trunk'])[]>`
    select n.e164, n.workspace_id, n.trunk_id, n.inbound, ${calledTrunk(sql)}
    from numbers n join trunks t on t.id = n.trunk_id and t.status = 'active' and t.deleted_at is null
    where n.e164 = any(${[...e164s]}) and n.status = 'assigned'`;
  return rows.map(({ e164, workspaceId, trunkId, inbound, ...trunk }) => ({
    e164,
    workspaceId,
    trunkId,
    inbound,
    trunk,
  }));
}

export async function hasInboundAccount(sql: SqlOrTx): Promise<boolean> {
  const rows = await sql`
    select 1 from trunks where inbound_username is not null and status = 'active' and deleted_at is null limit 1`;
  return rows.length > 0;
}
