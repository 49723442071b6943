import { randomBytes } from 'node:crypto';
import type { Page } from 'playwright-core';
import { type ConsoleFixture, HOSTILE } from './console-fixture.ts';

export const PASSWORD = 'four quite unrelated words';

/** Settings that let people register with an invitation, as `joinedAs` does. */
export const WITH_INVITATIONS = { REGISTRATION: 'invite' };

/** A browser profile of a new member with this role. */
export async function joinedAs(fixture: ConsoleFixture, role: 'admin' | 'member' | 'viewer'): Promise<Page> {
  const { api, workspaceId, browser, url } = fixture;
  const email = `${role}-${randomBytes(4).toString('hex')}@example.com`;
  const { token } = await api.post<{ token: string }>(`/workspaces/${workspaceId}/invitations`, { email, role });
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  const answer = await context.request.post(`${url}/auth/register`, {
    data: { email, password: PASSWORD, name: HOSTILE, invitation: token, cookie: true },
  });
  if (!answer.ok()) throw new Error(`registration failed: ${await answer.text()}`);
  return await context.newPage();
}
