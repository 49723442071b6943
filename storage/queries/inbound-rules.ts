import type { LegEndpoint } from '../../machines/events.ts';
import type { SqlOrTx } from '../database.ts';
import type { GatewayAddresses } from './trunk-gateways.ts';
import type { TrunkRow } from './trunks.ts';

/** What becomes of a call to a number. */
export type InboundRule = InboundDecision | AskRule;

export type InboundDecision = { action: 'reject' } | ForwardRule;

/** A URL of the integrator decides about each call. */
export interface AskRule {
  action: 'ask';
  url: string;
  /** Signs the question; sealed as the secrets of callbacks are, Base64. */
  secretSealed: string;
  secretLast4: string;
  /** Without a usable answer in time. */
  fallback: InboundDecision;
}

/** The caller is connected with an endpoint, which takes the agent's place. */
export interface ForwardRule {
  action: 'forward';
  endpoint: LegEndpoint;
  ringTimeoutS: number;
  maxDurationS: number;
  record: boolean;
  transcribe: boolean;
  /** What is said to the endpoint on answering, before it is connected; plain or SSML. Null: nothing. */
  announce: string | null;
  /** Null: the usual voice. */
  voiceId: string | null;
  /** Receives the callback of the finished call. Null or absent: none. */
  callbackUrl?: string | null;
  /** Sealed, Base64. Null or absent: callbacks are not signed. */
  callbackSecretSealed?: string | null;
}

/** What decided about an inbound call, as its first event tells it. */
export interface InboundDecider {
  decided_by: 'rule' | 'url' | 'fallback';
  /** Why the URL did not decide; null if it did or was not asked. */
  fault: string | null;
  /** How long the URL took; null if it was not asked. */
  after_ms: number | null;
}

/** A rented number that was called. */
export interface CalledNumber {
  e164: string;
  workspaceId: string;
  trunkId: string;
  trunk: GatewayAddresses & Pick<TrunkRow, 'ownerWorkspaceId' | 'inboundUsername' | 'inboundPasswordEncrypted'>;
  inbound: InboundRule | null;
}

/** The rented numbers among these, on trunks in service. A number stands on one trunk only once it is rented. */
export async function findCalledNumbers(sql: SqlOrTx, e164s: readonly string[]): Promise<CalledNumber[]> {
  const rows = await sql<(Omit<CalledNumber, 'trunk'> & CalledNumber['trunk'])[]>`
    select n.e164, n.workspace_id, n.trunk_id, n.inbound, t.sip_uri, t.transport, t.gateways,
      t.owner_workspace_id, t.inbound_username, t.inbound_password_encrypted
    from numbers n join trunks t on t.id = n.trunk_id and t.status = 'active' and t.deleted_at is null
    where n.e164 = any(${[...e164s]}) and n.status = 'assigned'`;
  return rows.map(
    ({ sipUri, transport, gateways, ownerWorkspaceId, inboundUsername, inboundPasswordEncrypted, ...number }) => ({
      ...number,
      trunk: { sipUri, transport, gateways, ownerWorkspaceId, inboundUsername, inboundPasswordEncrypted },
    }),
  );
}

/** Whether inbound calls may prove an account at all. */
export async function hasInboundAccount(sql: SqlOrTx): Promise<boolean> {
  const rows = await sql`
    select 1 from trunks where inbound_username is not null and status = 'active' and deleted_at is null limit 1`;
  return rows.length > 0;
}
