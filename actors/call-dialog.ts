import { type EventObject, fromCallback } from 'xstate';
import { placeOf } from '../machines/call-transfer.ts';
import { TandemError } from '../machines/errors.ts';
import { CODECS, type Codec, type LegEndpoint, type LegId } from '../machines/events.ts';
import type { DialogCommand, DialogInput } from '../machines/leg.machine.ts';
import type { Clock } from '../runtime/clock.ts';
import type {
  DialRequest,
  InboundCall,
  LegDialog,
  LegHandle,
  NextHop,
  Referral,
  SipGateway,
  TrunkEndpoint,
} from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import { storeLegHandle } from '../storage/queries/calls.ts';
import { getTrunkById, type TrunkRow } from '../storage/queries/trunks.ts';
import { trunkPasswordContext } from '../storage/secret-contexts.ts';
import type { SecretBox } from '../storage/secrets.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import { type GatewayChoice, GatewayDialing, UnresolvedHostError } from './gateway-dialing.ts';
import type { Logger } from './logger.ts';
import type { NodePhoneDesk } from './phones/phone-desk.actor.ts';
import type { TrunkTargets } from './trunk-targets.ts';

/** The leg machine's `dialog` port: one INVITE over the call's trunk or one browser, and the dialog that comes of it. */
export function dialogPort(options: DialogPortOptions) {
  const { sip, phones, trunks, sql, secrets, trunkTargets, registry, clock, logger } = options;
  return fromCallback<EventObject, DialogInput>(({ input, receive, sendBack }) => {
    const call = registry.get(input.callId);
    if (!call) throw new Error('a leg needs a live call');
    const abort = new AbortController();
    const signal = AbortSignal.any([abort.signal, call.abort.signal]);
    let hangup: Extract<DialogCommand, { type: 'hangup' }> | null = null;
    let dialog: LegDialog | null = null;

    /** For the process after this one, should this one die. A call can go on without. */
    function onHandle(handle: LegHandle): void {
      const { callId, ownerBoot: boot } = call!.row;
      storeLegHandle(sql, { callId, boot, leg: input.leg, handle }).catch((error) =>
        logger.warn({ callId, leg: input.leg, err: error }, 'what ends a leg after a crash could not be stored'),
      );
    }

    /** The trunk decides: a customer who may transfer can make the workspace pay for calls anywhere. */
    function referralsOf({ refer }: TrunkRow): Pick<DialRequest, 'onReferral'> {
      if (refer === 'none') return {};
      return {
        async onReferral(referral) {
          const place = placeOf(call!.actor.getSnapshot().context.talk, input.leg);
          if (place === null || (refer !== 'both' && refer !== place)) return 603;
          return await options.onReferral(referral, { callId: input.callId, leg: input.leg });
        },
      };
    }

    async function trunkOfCall(): Promise<TrunkRow> {
      const trunk = await getTrunkById(sql, call!.row.trunkId);
      if (!trunk) throw new Error('the trunk of a live call is gone');
      return trunk;
    }

    async function answerCaller(caller: InboundCall): Promise<void> {
      const trunk = await trunkOfCall();
      if (hangup !== null || signal.aborted) return refuseUndialed();
      dialog = caller.answer({
        trunk: trunkEndpoint(trunk, secrets, null),
        localMedia: input.local,
        callId: input.callId,
        leg: input.leg,
        signal,
        onEvent: sendBack,
        ...referralsOf(trunk),
        onHandle,
      });
    }

    async function dialPhone(calledNumber: string): Promise<void> {
      const trunk = await trunkOfCall();
      if (hangup !== null || signal.aborted) return refuseUndialed();
      const dialing = new GatewayDialing({
        choices: trunks.dialing(trunk),
        mayTryNext: () => !signal.aborted && sip.state === 'connected',
        onEvent: sendBack,
        onError: refuseAfter,
        clock,
        locate: (gateway) => trunkTargets.locate({ ...trunk, ...gateway }, signal),
        async dial({ gateway, hop, given, ...listeners }) {
          if (hangup !== null || signal.aborted) {
            refuseUndialed();
            return null;
          }
          return sip.dial({
            trunk: trunkEndpoint({ ...trunk, ...gateway }, secrets, hop),
            callerId: call!.row.did,
            calledNumber,
            replaces: call!.guests.get(input.leg)?.replaces ?? null,
            localMedia: input.local,
            callId: input.callId,
            leg: input.leg,
            signal: AbortSignal.any([signal, given]),
            ...referralsOf(trunk),
            onHandle,
            ...listeners,
          });
        },
      });
      dialog = dialing;
      dialing.start();
    }

    function dialBrowser(userId: number): void {
      const { row, guests } = call!;
      const role = guests.get(input.leg)?.role ?? 'agent';
      dialog = phones.dial({
        workspaceId: row.workspaceId,
        userId,
        purpose: role === 'supervisor' ? 'supervise' : 'agent',
        call: {
          call_id: row.callId,
          reference_id: row.referenceId,
          leg_id: input.leg,
          role,
          customer_number: row.customerNumber,
        },
        localMedia: input.local,
        signal,
        onEvent: sendBack,
      });
    }

    async function openDialog(live: LiveCall): Promise<void> {
      if (input.leg === 'customer' && live.inbound !== null) return await answerCaller(live.inbound);
      const endpoint = endpointOf(live, input.leg);
      if (endpoint.type === 'phone') return await dialPhone(endpoint.number);
      dialBrowser(endpoint.userId);
    }

    function refuseUndialed(): void {
      const detail = 'hung up before the INVITE was sent';
      sendBack({ type: 'leg.refused', sipStatus: 487, hangupCause: hangup?.cause ?? 'ORIGINATOR_CANCEL', detail });
    }

    function refuseTarget(detail: string): void {
      sendBack({ type: 'leg.refused', sipStatus: 503, hangupCause: 'NO_ROUTE_DESTINATION', detail });
    }

    function refuseAfter(error: unknown): void {
      if (hangup !== null || signal.aborted) refuseUndialed();
      else if (error instanceof UnresolvedHostError) refuseTarget(error.message);
      else if (error instanceof TandemError && error.code === 'TRUNK_HOST_NOT_ALLOWED') refuseTarget(error.message);
      else {
        logger.error({ callId: input.callId, leg: input.leg, err: error }, 'leg could not be dialed');
        sendBack({ type: 'leg.lost', detail: 'the leg could not be dialed' });
      }
    }

    receive((event) => {
      const command = event as DialogCommand;
      if (command.type === 'hold') dialog?.hold(command.isHeld);
      else if (command.type === 'offer-again') dialog?.offerAgain();
      else {
        hangup = command;
        dialog?.hangup(command.cause);
      }
    });
    openDialog(call).catch(refuseAfter);
    return () => abort.abort();
  });
}

function endpointOf({ row, guests }: LiveCall, leg: LegId): LegEndpoint {
  if (leg === 'customer' && row.customerNumber !== null) return { type: 'phone', number: row.customerNumber };
  if (leg === 'agent' && row.agentUserId !== null) return { type: 'webrtc', userId: row.agentUserId };
  if (leg === 'agent' && row.agentNumber !== null) return { type: 'phone', number: row.agentNumber };
  const guest = guests.get(leg);
  if (guest === undefined) throw new Error('a leg without an endpoint was to be dialed');
  return guest.endpoint;
}

export interface DialogPortOptions {
  sip: SipGateway;
  phones: Pick<NodePhoneDesk, 'dial'>;
  trunks: TrunkObserver;
  sql: Sql;
  secrets: SecretBox;
  trunkTargets: TrunkTargets;
  registry: CallRegistry;
  /** Handles a REFER that the trunk allows. Resolves as `DialRequest.onReferral` does. */
  onReferral: (referral: Referral, from: { callId: string; leg: LegId }) => Promise<number>;
  clock: Clock;
  logger: Logger;
}

/** Learns which carriers live from the calls over them. */
export interface TrunkObserver {
  /** A call is dialed over the trunk: the gateways in the order to try them. At least one. */
  dialing(trunk: TrunkRow): readonly GatewayChoice[];
}

/** What the SIP side needs to know of a trunk, its password opened. */
export function trunkEndpoint(trunk: TrunkRow, secrets: SecretBox, nextHop: NextHop | null): TrunkEndpoint {
  const { sipUri, transport } = trunk;
  return {
    sipUri,
    transport: nextHop?.transport ?? (transport === 'auto' ? 'udp' : transport),
    nextHop,
    username: trunk.username,
    password: trunk.passwordEncrypted ? secrets.open(trunk.passwordEncrypted, trunkPasswordContext(trunk.id)) : null,
    codecs: trunk.codecs.filter((name): name is Codec => name in CODECS),
    hasComfortNoise: trunk.codecs.includes('CN'),
    mediaEncryption: trunk.mediaEncryption,
  };
}
