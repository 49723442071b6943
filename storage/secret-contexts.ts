/** Binds a sealed password to its trunk: it does not open for another one. */
export function trunkPasswordContext(trunkId: string): string {
  return `trunk_password:${trunkId}`;
}

/** As `trunkPasswordContext`, for the password of inbound calls. */
export function trunkInboundPasswordContext(trunkId: string): string {
  return `trunk_inbound_password:${trunkId}`;
}

export function webhookSecretContext(webhookId: string): string {
  return `webhook_secret:${webhookId}`;
}

export function callbackSecretContext(workspaceId: string): string {
  return `callback secret of workspace ${workspaceId}`;
}

export function signingKeyContext(keyId: string): string {
  return `signing key ${keyId}`;
}

export function idempotentRequestContext(requestId: string): string {
  return `idempotent request ${requestId}`;
}
