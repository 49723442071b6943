import type { TrunkHealth } from './reachability.ts';

/** `auto`: by the carrier's NAPTR and SRV records (RFC 3263). */
export type TrunkTransport = 'udp' | 'tcp' | 'tls' | 'auto';

/** A gateway as stored with its trunk. */
export interface StoredGateway {
  sipUri: string;
  /** Null: the trunk's transport. */
  transport: TrunkTransport | null;
  /** Lower values are tried first (RFC 2782). */
  priority: number;
  /** Share of calls among gateways of equal priority. */
  weight: number;
}

export interface Gateway extends StoredGateway {
  transport: TrunkTransport;
}

/** Health of one gateway. */
export interface GatewayHealth extends TrunkHealth {
  sipUri: string;
  transport: TrunkTransport;
  /** ISO 8601. Null while `unknown`. */
  since: string | null;
}

export interface GatewayAddresses {
  sipUri: string;
  transport: TrunkTransport;
  gateways: readonly StoredGateway[];
}

/** Returns at least one gateway. The first has the trunk's `sipUri` and `transport`. */
export function gatewaysOf(row: GatewayAddresses): Gateway[] {
  const { sipUri, transport } = row;
  if (row.gateways.length === 0) return [{ sipUri, transport, priority: 0, weight: 1 }];
  return row.gateways.map((gateway, index) =>
    index === 0 ? { ...gateway, sipUri, transport } : { ...gateway, transport: gateway.transport ?? transport },
  );
}

export function healthOf(
  row: { gatewayHealth: readonly GatewayHealth[] },
  { sipUri, transport }: Pick<Gateway, 'sipUri' | 'transport'>,
): GatewayHealth | null {
  return row.gatewayHealth.find((health) => health.sipUri === sipUri && health.transport === transport) ?? null;
}
