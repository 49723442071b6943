import { TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import type { NextHop, SipGateway, TrunkProbe } from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import type { Gateway } from '../storage/queries/trunk-gateways.ts';
import { addTrunkProbe, type ProbeOutcome } from '../storage/queries/trunk-probes.ts';
import type { DialedTrunk } from '../storage/queries/trunks.ts';
import type { SecretBox } from '../storage/secrets.ts';
import type { Logger } from './logger.ts';
import { trunkEndpoint } from './trunk-dialing.ts';
import type { TrunkTargets } from './trunk-targets.ts';

export interface TrunkProbesOptions {
  sip: Pick<SipGateway, 'probe'>;
  sql: Sql;
  secrets: SecretBox;
  trunkTargets: TrunkTargets;
  node: string;
  clock: Clock;
  logger: Logger;
}

export interface TrunkProbes {
  /** Probes the addresses in `only`; null: those that the gateway's name resolves to. */
  send(
    row: DialedTrunk,
    gateway: Gateway,
    options: { only: readonly NextHop[] | null; signal: AbortSignal },
  ): Promise<ProbeOutcome>;
  /** Adds an outcome to the trunk's recent probes. Never throws. */
  keep(trunkId: string, outcome: ProbeOutcome): Promise<void>;
}

/** Addresses of one gateway to probe at a time. */
const MOST_PROBED = 8;
const NOT_SENT: Pick<TrunkProbe, 'sipStatus' | 'roundTripMs' | 'silence'> = {
  sipStatus: null,
  roundTripMs: 0,
  silence: 'transport_error',
};

export function createTrunkProbes(options: TrunkProbesOptions): TrunkProbes {
  const { sip, sql, secrets, trunkTargets, node, clock, logger } = options;

  async function probeOf(
    row: DialedTrunk,
    gateway: Gateway,
    { only, signal }: { only: readonly NextHop[] | null; signal: AbortSignal },
  ): Promise<typeof NOT_SENT> {
    const target = { ...row, ...gateway };
    try {
      const hops = only ?? (await trunkTargets.locate(target, signal));
      return await firstAnswer(
        hops.slice(0, MOST_PROBED).map((hop) => sip.probe(trunkEndpoint(target, secrets, hop), signal)),
      );
    } catch (error) {
      const isRefused = error instanceof TandemError && error.code === 'TRUNK_HOST_NOT_ALLOWED';
      if (signal.aborted || isRefused) return NOT_SENT;
      throw error;
    }
  }

  return {
    async send(row, gateway, sending) {
      const { sipStatus, roundTripMs, silence } = await probeOf(row, gateway, sending);
      const { sipUri, transport } = gateway;
      return {
        ...{ sipUri, transport, at: new Date(clock.now()), sipStatus, silence },
        roundTripMs: sipStatus === null ? null : Math.round(roundTripMs * 100) / 100,
      };
    },
    async keep(trunkId, outcome) {
      await addTrunkProbe(sql, { trunkId, node, outcome }).catch((error: unknown) => {
        logger.debug({ trunkId, err: error }, 'trunk probe could not be stored');
      });
    },
  };
}

/** First probe with a response; the first of all if none has one. */
async function firstAnswer(probes: readonly Promise<TrunkProbe>[]): Promise<typeof NOT_SENT> {
  if (probes.length === 0) return NOT_SENT;
  const answered = probes.map(async (probe) => {
    const result = await probe;
    if (result.silence !== null) throw new Error('no response');
    return result;
  });
  return await Promise.any(answered).catch(() => probes[0]!);
}
