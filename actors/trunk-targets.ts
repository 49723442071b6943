import type { SipServer } from '../sip/server-location.ts';
import type { NextHop } from '../sip/sip-gateway.ts';

/** Resolves the hosts of trunks and restricts them, so that no trunk sends SIP into the server's own network. */
export interface TrunkTargets {
  /**
   * Resolves the addresses of a gateway, in the order to try (RFC 3263), and checks each. Public addresses are allowed.
   * Private ones are allowed only for trunks of the operator and in TRUNK_ALLOW_CIDRS, link-local and metadata
   * addresses never. Call it again before each request, because DNS may have changed.
   * @returns empty if the host cannot be resolved, for trunks of the operator only
   * @throws TandemError TRUNK_HOST_NOT_ALLOWED
   */
  locate(target: TrunkTarget, signal?: AbortSignal): Promise<readonly NextHop[]>;
}

export interface TrunkTarget extends SipServer {
  /** Null: the operator's trunk. */
  ownerWorkspaceId: string | null;
}
