import { TandemError } from '../../machines/errors.ts';
import type { SqlOrTx } from '../database.ts';

/** What a user told us after they registered. */
export interface UserProfile {
  id: number;
  email: string;
  name: string;
  onboardedAt: Date | null;
  defaultVoiceId: string | null;
  marketingConsent: boolean;
  /** When and where they last said yes or no; null while nobody asked. */
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

export async function getUserProfile(sql: SqlOrTx, userId: number): Promise<UserProfile> {
  const [row] = await sql<UserProfile[]>`
    select id, email, name, onboarded_at, default_voice_id, marketing_consent, consent_timestamp, consent_source
    from users where id = ${userId}`;
  return row!;
}

/** Repeatable: the first time stays, a voice replaces the one before. */
export async function onboardUser(
  sql: SqlOrTx,
  { userId, defaultVoiceId, now }: { userId: number; defaultVoiceId: string | undefined; now: Date },
): Promise<void> {
  await sql`
    update users set onboarded_at = coalesce(onboarded_at, ${now}),
      default_voice_id = coalesce(${defaultVoiceId ?? null}, default_voice_id)
    where id = ${userId}`;
}

/** Saying the same again changes nothing, so that the time stays the one of the decision. */
export async function saveMarketingConsent(
  sql: SqlOrTx,
  { userId, consent, source, now }: { userId: number; consent: boolean; source: string; now: Date },
): Promise<void> {
  await sql`
    update users set marketing_consent = ${consent}, consent_timestamp = ${now}, consent_source = ${source}
    where id = ${userId} and (consent_timestamp is null or marketing_consent <> ${consent})`;
}
