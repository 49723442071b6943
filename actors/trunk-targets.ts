/** Decides where trunks may lead, so that a trunk cannot make the server send SIP into its own network. */
export interface TrunkTargets {
  /**
   * Resolves the host of a trunk and checks every address. Public addresses are allowed, private ones only for trunks of
   * the operator and in TRUNK_ALLOW_CIDRS, and link-local and metadata addresses never. Check again before each request:
   * DNS may have changed.
   * @returns the address to send to instead of resolving the host again (rebinding). Null: the host itself. Names of the
   * operator's trunks may be SRV names, which the SIP server resolves.
   * @throws TandemError TRUNK_HOST_NOT_ALLOWED
   */
  check(target: TrunkTarget, signal?: AbortSignal): Promise<string | null>;
}

export interface TrunkTarget {
  sipUri: string;
  /** Null: the operator's. */
  ownerWorkspaceId: string | null;
}
