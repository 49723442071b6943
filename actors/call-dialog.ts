import { fromCallback } from 'xstate';
import { placeOf } from '../machines/call-transfer.ts';
import { TandemError } from '../machines/errors.ts';
import type { LegEndpoint, LegId } from '../machines/events.ts';
import type { DialogCommand, DialogInput } from '../machines/leg.machine.ts';
import type { DialRequest, InboundCall, LegDialog, LegHandle, Referral } from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import { storeLegHandle } from '../storage/queries/calls.ts';
import { type DialedTrunk, getTrunkById } from '../storage/queries/trunks.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import { UnresolvedHostError } from './gateway-dialing.ts';
import type { Logger } from './logger.ts';
import type { NodePhoneDesk } from './phones/phone-desk.actor.ts';
import { dialOverTrunk, type TrunkDialingParts, trunkEndpoint } from './trunk-dialing.ts';

/** The leg machine's `dialog` port: one INVITE, over the call's trunk or to one browser, and its dialog. */
export function dialogPort(options: DialogPortOptions) {
  const { phones, sql, secrets, registry, logger } = options;
  return fromCallback<DialogCommand, DialogInput>(({ input, receive, sendBack }) => {
    const call = registry.get(input.callId);
    if (!call) throw new Error('a leg needs a live call');
    const abort = new AbortController();
    const signal = AbortSignal.any([abort.signal, call.abort.signal]);
    let hangup: Extract<DialogCommand, { type: 'hangup' }> | null = null;
    let dialog: LegDialog | null = null;

    let stored = Promise.resolve();

    /** Lets the next process end this leg after a crash. The call can continue without it. */
    function onHandle(handle: LegHandle): void {
      const { callId, ownerBoot: boot } = call!.row;
      // In order: over two connections, the handle of the INVITE could replace that of the dialog.
      stored = stored
        .then(() => storeLegHandle(sql, { callId, boot, leg: input.leg, handle }))
        .catch((error) =>
          logger.warn({ callId, leg: input.leg, err: error }, 'what ends a leg after a crash could not be stored'),
        );
    }

    /**
     * Only the trunk's setting allows REFER, because a customer who may transfer can make the workspace pay for calls
     * anywhere.
     */
    function referralsOf({ refer }: DialedTrunk): Pick<DialRequest, 'onReferral'> {
      if (refer === 'none') return {};
      return {
        async onReferral(referral) {
          const place = placeOf(call!.actor.getSnapshot().context.talk, input.leg);
          if (place === null || (refer !== 'both' && refer !== place)) return 603;
          return await options.onReferral(referral, { callId: input.callId, leg: input.leg });
        },
      };
    }

    async function trunkOfCall(): Promise<DialedTrunk> {
      const admitted = input.leg === 'agent' ? call!.trunk : null;
      call!.trunk = null;
      const trunk = admitted ?? (await getTrunkById(sql, call!.row.trunkId));
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
      dialog = dialOverTrunk(trunk, options, {
        callerId: call!.row.did,
        calledNumber,
        replaces: call!.guests.get(input.leg)?.replaces ?? null,
        localMedia: input.local,
        callId: input.callId,
        leg: input.leg,
        signal,
        ...referralsOf(trunk),
        onHandle,
        onEvent: sendBack,
        onError: refuseAfter,
        isWanted() {
          const isWanted = hangup === null && !signal.aborted;
          if (!isWanted) refuseUndialed();
          return isWanted;
        },
      });
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

    receive((command) => {
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

export interface DialogPortOptions extends TrunkDialingParts {
  phones: Pick<NodePhoneDesk, 'dial'>;
  sql: Sql;
  registry: CallRegistry;
  /** Handles a REFER that the trunk allows. Resolves as `DialRequest.onReferral` does. */
  onReferral: (referral: Referral, from: { callId: string; leg: LegId }) => Promise<number>;
  logger: Logger;
}
