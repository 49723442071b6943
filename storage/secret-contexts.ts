/** What a sealed trunk password is bound to: copied to another trunk it does not open. */
export function trunkPasswordContext(trunkId: string): string {
  return `trunk_password:${trunkId}`;
}

/** As `trunkPasswordContext`, for the password that inbound calls prove. */
export function trunkInboundPasswordContext(trunkId: string): string {
  return `trunk_inbound_password:${trunkId}`;
}

/** What a sealed webhook secret is bound to: it opens for its own webhook only. */
export function webhookSecretContext(webhookId: string): string {
  return `webhook_secret:${webhookId}`;
}

/** What a sealed callback secret is bound to: it opens for its own workspace only. */
export function callbackSecretContext(workspaceId: string): string {
  return `callback secret of workspace ${workspaceId}`;
}

/** What the sealed private half of a signing key is bound to. */
export function signingKeyContext(keyId: string): string {
  return `signing key ${keyId}`;
}

/** What the sealed record of a request with an Idempotency-Key is bound to. */
export function idempotentRequestContext(requestId: string): string {
  return `idempotent request ${requestId}`;
}
