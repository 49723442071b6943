/** What a sealed trunk password is bound to: copied to another trunk it does not open. */
export function trunkPasswordContext(trunkId: string): string {
  return `trunk_password:${trunkId}`;
}
