import { randomBytes } from 'node:crypto';
import { createSessionTokens } from '../../http/session-tokens.ts';
import type { Answer, HttpFixture, Member } from './fixture.ts';

/** Long and uncommon, as the password rules require. */
export const PASSWORD = 'green staple under the ladder';

/** A logged-in user. */
export interface Person {
  token: string;
  userId: number;
  email: string;
  workspaceId: string;
}

export async function register(fixture: HttpFixture, fields: Record<string, unknown> = {}): Promise<Person> {
  const email = `${randomBytes(6).toString('hex')}@example.com`;
  const body = { email, password: PASSWORD, ...fields };
  const { status, body: answer } = await fixture.call('POST', '/auth/register', { as: null, body });
  if (status !== 201) throw new Error(`registering was answered ${status} ${answer?.code}`);
  const { token, user, workspace } = answer.data;
  return { token, userId: user.id, email: user.email, workspaceId: workspace.id };
}

/** A session of a user without a password, as the fixture creates them. */
export async function sessionOf({ sql, secrets, now }: HttpFixture, { userId }: Member): Promise<string> {
  return (await createSessionTokens({ sql, secrets }).mint({ userId, now: now.current })).token;
}

export function callWith(
  fixture: HttpFixture,
  token: string,
  [method, url, body]: [Parameters<HttpFixture['call']>[0], string, unknown?],
): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}` };
  return fixture.call(method, url, { as: null, headers, ...(body === undefined ? {} : { body }) });
}
