import type { ProbeOutcome } from '../storage/queries/trunk-probes.ts';

/** Checks on request whether a trunk responds. Implemented in `trunk-watch.ts`. */
export interface TrunkProber {
  /**
   * Sends OPTIONS to each gateway of the trunk and resolves with the outcomes within 5 seconds, in the order of the
   * gateways. They count like periodic probes, unless the trunk is disabled or has none.
   * @throws TandemError `TRUNK_NOT_FOUND`; `CARRIER_LINE_DOWN` while our own SIP server is away
   */
  probe(trunkId: string): Promise<readonly ProbeOutcome[]>;
}
