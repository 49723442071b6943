/** What a sealed trunk password is bound to: copied to another trunk it does not open. */
export function trunkPasswordContext(trunkId: string): string {
  return `trunk_password:${trunkId}`;
}

/** What a sealed callback secret is bound to: it opens for its own workspace only. */
export function callbackSecretContext(workspaceId: string): string {
  return `callback secret of workspace ${workspaceId}`;
}
