import type { SqlOrTx } from '../database.ts';
import { jsonb } from './json-columns.ts';

export interface SigningKeyRow {
  /** The `kid` of tokens. */
  id: string;
  algorithm: 'EdDSA';
  /** JWK as JSON, sealed under `signingKeyContext(id)`. */
  privateKeyEncrypted: Buffer;
  publicKey: Record<string, unknown>;
  createdAt: Date;
}

export type NewSigningKey = Pick<SigningKeyRow, 'id' | 'privateKeyEncrypted' | 'publicKey'> & { now: Date };

export async function activeSigningKey(sql: SqlOrTx): Promise<SigningKeyRow | null> {
  const [row] = await sql<SigningKeyRow[]>`select * from signing_keys where retired_at is null`;
  return row ?? null;
}

/** Returns a key that may verify tokens: the active one, or one retired after `retiredAfter`. */
export async function verifyingKey(
  sql: SqlOrTx,
  { id, retiredAfter }: { id: string; retiredAfter: Date },
): Promise<SigningKeyRow | null> {
  const [row] = await sql<SigningKeyRow[]>`
    select * from signing_keys where id = ${id} and (retired_at is null or retired_at > ${retiredAfter})`;
  return row ?? null;
}

/** Adds the new signing key. If several nodes do so at once, only one succeeds: false for the others. */
export async function addSigningKey(sql: SqlOrTx, { now, publicKey, ...key }: NewSigningKey): Promise<boolean> {
  const row = { ...key, publicKey: jsonb(sql, publicKey), algorithm: 'EdDSA', createdAt: now };
  const result = await sql`
    insert into signing_keys ${sql(row)} on conflict ((true)) where retired_at is null do nothing`;
  return result.count === 1;
}

/** Stops signing with the key. Its tokens stay valid until they expire. */
export async function retireSigningKey(sql: SqlOrTx, { id, now }: { id: string; now: Date }): Promise<void> {
  await sql`update signing_keys set retired_at = ${now} where id = ${id} and retired_at is null`;
}
