import { TandemError } from '../../machines/errors.ts';
import type { SqlOrTx } from '../database.ts';
import type { UserRow } from './workspaces.ts';

export interface UserProfile {
  id: number;
  email: string;
  name: string;
  onboardedAt: Date | null;
  defaultVoiceId: string | null;
  marketingConsent: boolean;
  /** Time and source of the last decision; null before one. */
  consentTimestamp: Date | null;
  consentSource: string | null;
}

/** @throws TandemError EMAIL_TAKEN */
export async function registerUser(
  sql: SqlOrTx,
  { email, passwordHash, name, now }: { email: string; passwordHash: string; name: string; now: Date },
): Promise<{ id: number; email: string; name: string }> {
  const row = { email: email.toLowerCase(), passwordHash, name, createdAt: now };
  const [user] = await sql<{ id: number; email: string; name: string }[]>`
    insert into users ${sql(row)} on conflict (email) do nothing returning id, email, name`;
  if (!user)
    throw new TandemError('EMAIL_TAKEN', 'An account with this e-mail address already exists. Log in instead.');
  return user;
}

/** Stores a newer hash of the same password, unless the password changed meanwhile. */
export async function replacePasswordHash(
  sql: SqlOrTx,
  { userId, from, to }: { userId: number; from: string; to: string },
): Promise<void> {
  await sql`update users set password_hash = ${to} where id = ${userId} and password_hash = ${from}`;
}

export async function getUser(sql: SqlOrTx, userId: number): Promise<UserRow> {
  const [row] = await sql<UserRow[]>`select * from users where id = ${userId}`;
  return row!;
}

/** Waits for a change that runs at the same time. */
export async function settledPasswordHash(sql: SqlOrTx, userId: number): Promise<string | null> {
  const [row] = await sql<{ passwordHash: string | null }[]>`
    select password_hash from users where id = ${userId} for share`;
  return row?.passwordHash ?? null;
}

export async function hasPassword(sql: SqlOrTx, userId: number): Promise<boolean> {
  const rows = await sql`select 1 from users where id = ${userId} and password_hash is not null`;
  return rows.length === 1;
}

export async function getUserProfile(sql: SqlOrTx, userId: number): Promise<UserProfile> {
  const [row] = await sql<UserProfile[]>`
    select id, email, name, onboarded_at, default_voice_id, marketing_consent, consent_timestamp, consent_source
    from users where id = ${userId}`;
  return row!;
}

/** Idempotent: the first time stays, and a new voice replaces the old one. */
export async function onboardUser(
  sql: SqlOrTx,
  { userId, defaultVoiceId, now }: { userId: number; defaultVoiceId: string | undefined; now: Date },
): Promise<void> {
  await sql`
    update users set onboarded_at = coalesce(onboarded_at, ${now}),
      default_voice_id = coalesce(${defaultVoiceId ?? null}, default_voice_id)
    where id = ${userId}`;
}

/** Repeating a decision changes nothing, so its time stays. */
export async function saveMarketingConsent(
  sql: SqlOrTx,
  { userId, consent, source, now }: { userId: number; consent: boolean; source: string; now: Date },
): Promise<void> {
  await sql`
    update users set marketing_consent = ${consent}, consent_timestamp = ${now}, consent_source = ${source}
    where id = ${userId} and (consent_timestamp is null or marketing_consent <> ${consent})`;
}
