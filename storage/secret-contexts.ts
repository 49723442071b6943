/** What each kind of sealed secret is bound to: a value copied to another column, or trunk, does not open there. */

export function trunkPasswordContext(trunkId: string): string {
  return `trunk_password:${trunkId}`;
}

/** Of a call and of the deliveries that carry the same sealed bytes. */
export const CALLBACK_SECRET_CONTEXT = 'callback_secret';
