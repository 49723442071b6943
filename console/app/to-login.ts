import { agentPhone } from '../phone/agent-phone.ts';

/**
 * Shows the login after the user has logged out. Loads the page anew, because it keeps more than the cached data, which
 * the next user must not see: drafts, a conversation, the last call.
 */
export function toLogin(): void {
  agentPhone.stop();
  location.assign('/console/login');
}
