import type { SqlOrTx } from '../database.ts';

/** A SIP message of a call, with masked secrets. */
export interface StoredSipMessage {
  callId: string;
  /** `agent`, `customer` or the id of a further leg. */
  leg: string;
  at: Date;
  direction: 'sent' | 'received';
  /** Such as `udp`. */
  transport: string;
  sipCallId: string;
  /** Our address and the peer's; null if a drachtio-server omits it. */
  localHost: string | null;
  localPort: number | null;
  remoteHost: string | null;
  remotePort: number | null;
  message: Buffer;
  /** The message is cut off, and later ones are not stored. */
  isCut: boolean;
}

/** Stores messages in this order. Ignores those of missing calls. */
export async function addSipMessages(sql: SqlOrTx, messages: readonly StoredSipMessage[]): Promise<void> {
  const callIds = [...new Set(messages.map(({ callId }) => callId))];
  const known = await sql<{ callId: string }[]>`select call_id from calls where call_id in ${sql(callIds)}`;
  const exists = new Set(known.map(({ callId }) => callId));
  const rows = messages.filter(({ callId }) => exists.has(callId));
  if (rows.length > 0) await sql`insert into sip_messages ${sql(rows)}`;
}

/** Oldest first. */
export async function sipMessagesOf(sql: SqlOrTx, callId: string): Promise<StoredSipMessage[]> {
  return await sql<StoredSipMessage[]>`
    select call_id, leg, at, direction, transport, sip_call_id, local_host, local_port, remote_host, remote_port,
      message, is_cut
    from sip_messages where call_id = ${callId} order by at, id`;
}
