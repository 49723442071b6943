import { CODECS, type Codec } from '../machines/events.ts';
import type { Clock } from '../runtime/clock.ts';
import type { DialRequest, LegDialog, NextHop, SipGateway, TrunkEndpoint } from '../sip/sip-gateway.ts';
import type { DialedTrunk } from '../storage/queries/trunks.ts';
import { trunkPasswordContext } from '../storage/secret-contexts.ts';
import type { SecretBox } from '../storage/secrets.ts';
import { type GatewayChoice, GatewayDialing } from './gateway-dialing.ts';
import type { TrunkTargets } from './trunk-targets.ts';

export interface TrunkDialingParts {
  sip: SipGateway;
  trunks: TrunkObserver;
  trunkTargets: TrunkTargets;
  secrets: SecretBox;
  clock: Clock;
}

export interface TrunkDialRequest extends Omit<DialRequest, 'trunk' | 'onSign'> {
  /** Called with the last error if no gateway could be dialed. */
  onError: (error: unknown) => void;
  /** Called before each INVITE. False: send none; the owner has reported the reason. */
  isWanted: () => boolean;
}

/** Dials a number over a trunk: tries the addresses of its gateways until one accepts the call. */
export function dialOverTrunk(
  trunk: DialedTrunk,
  { sip, trunks, trunkTargets, secrets, clock }: TrunkDialingParts,
  { onError, isWanted, onEvent, signal, ...request }: TrunkDialRequest,
): LegDialog {
  const dialing = new GatewayDialing({
    choices: trunks.dialing(trunk),
    mayTryNext: () => !signal.aborted && sip.state === 'connected',
    ...{ onEvent, onError, clock },
    locate: (gateway) => trunkTargets.locate({ ...trunk, ...gateway }, signal),
    async dial({ gateway, hop, given, ...listeners }) {
      if (!isWanted()) return null;
      return sip.dial({
        ...request,
        trunk: trunkEndpoint({ ...trunk, ...gateway }, secrets, hop),
        signal: AbortSignal.any([signal, given]),
        ...listeners,
      });
    },
  });
  dialing.start();
  return dialing;
}

/** Learns the health of carriers from calls. */
export interface TrunkObserver {
  /** Returns the gateways to try for a call, in order. At least one. */
  dialing(trunk: DialedTrunk): readonly GatewayChoice[];
}

/** Builds the SIP side's view of a trunk, with its decrypted password. */
export function trunkEndpoint(trunk: DialedTrunk, secrets: SecretBox, nextHop: NextHop | null): TrunkEndpoint {
  const { sipUri, transport } = trunk;
  return {
    sipUri,
    transport: nextHop?.transport ?? (transport === 'auto' ? 'udp' : transport),
    nextHop,
    username: trunk.username,
    password: trunk.passwordEncrypted ? secrets.open(trunk.passwordEncrypted, trunkPasswordContext(trunk.id)) : null,
    ...trunkMedia(trunk),
    hasComfortNoise: trunk.codecs.includes('CN'),
  };
}

export function trunkMedia({ codecs, mediaEncryption }: Pick<DialedTrunk, 'codecs' | 'mediaEncryption'>) {
  return { codecs: codecs.filter((name): name is Codec => name in CODECS), mediaEncryption };
}
