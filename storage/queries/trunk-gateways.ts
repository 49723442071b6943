import type { TrunkHealth } from './reachability.ts';

/** `auto`: as the NAPTR and SRV records of the carrier say (RFC 3263). */
export type TrunkTransport = 'udp' | 'tcp' | 'tls' | 'auto';

/** As a trunk stores it. */
export interface StoredGateway {
  sipUri: string;
  /** Null: that of the trunk. */
  transport: TrunkTransport | null;
  /** Lower ones are tried first (RFC 2782). */
  priority: number;
  /** Share of the calls among gateways of one priority. */
  weight: number;
}

export interface Gateway extends StoredGateway {
  transport: TrunkTransport;
}

/** What is known of one gateway. */
export interface GatewayHealth extends TrunkHealth {
  sipUri: string;
  transport: TrunkTransport;
  /** ISO 8601. Null while `unknown`. */
  since: string | null;
}

/** The columns of a trunk that say where its gateways are. */
export interface GatewayAddresses {
  sipUri: string;
  transport: TrunkTransport;
  gateways: readonly StoredGateway[];
}

/** At least one. `sipUri` and `transport` of the trunk are those of the first. */
export function gatewaysOf(row: GatewayAddresses): Gateway[] {
  const { sipUri, transport } = row;
  if (row.gateways.length === 0) return [{ sipUri, transport, priority: 0, weight: 1 }];
  return row.gateways.map((gateway, index) =>
    index === 0 ? { ...gateway, sipUri, transport } : { ...gateway, transport: gateway.transport ?? transport },
  );
}

/** Null when the gateway was never checked. */
export function healthOf(
  row: { gatewayHealth: readonly GatewayHealth[] },
  { sipUri, transport }: Pick<Gateway, 'sipUri' | 'transport'>,
): GatewayHealth | null {
  return row.gatewayHealth.find((health) => health.sipUri === sipUri && health.transport === transport) ?? null;
}
