import { type EventObject, fromCallback } from 'xstate';
import { CODECS, type Codec, type LegId } from '../machines/events.ts';
import type { DialogCommand, DialogInput } from '../machines/leg.machine.ts';
import type { LegDialog, SipGateway, TrunkEndpoint } from '../sip/sip-gateway.ts';
import type { Sql } from '../storage/database.ts';
import { getTrunkById, type TrunkRow } from '../storage/queries/trunks.ts';
import { trunkPasswordContext } from '../storage/secret-contexts.ts';
import type { SecretBox } from '../storage/secrets.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import type { Logger } from './logger.ts';

/** The leg machine's `dialog` port: one INVITE over the call's trunk, and the dialog that comes of it. */
export function dialogPort({ sip, sql, secrets, registry, logger }: DialogPortOptions) {
  return fromCallback<EventObject, DialogInput>(({ input, receive, sendBack }) => {
    const call = registry.get(input.callId);
    if (!call) throw new Error('a leg needs a live call');
    const abort = new AbortController();
    const signal = AbortSignal.any([abort.signal, call.abort.signal]);
    let hangup: Extract<DialogCommand, { type: 'hangup' }> | null = null;
    let dialog: LegDialog | null = null;

    async function dial(): Promise<void> {
      const trunk = await getTrunkById(sql, call!.row.trunkId);
      if (!trunk) throw new Error('the trunk of a live call is gone');
      if (hangup !== null || signal.aborted) return refuseUndialed();
      dialog = sip.dial({
        trunk: trunkEndpoint(trunk, secrets),
        callerId: call!.row.did,
        calledNumber: numberOf(call!, input.leg),
        localMedia: input.local,
        callId: input.callId,
        signal,
        onEvent: sendBack,
      });
    }

    function refuseUndialed(): void {
      const detail = 'hung up before the INVITE was sent';
      sendBack({ type: 'leg.refused', sipStatus: 487, hangupCause: hangup?.cause ?? 'ORIGINATOR_CANCEL', detail });
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
    dial().catch((error) => {
      logger.error({ callId: input.callId, leg: input.leg, err: error }, 'leg could not be dialed');
      sendBack({ type: 'leg.lost', detail: 'the leg could not be dialed' });
    });
    return () => abort.abort();
  });
}

function numberOf({ row, guestNumbers }: LiveCall, leg: LegId): string {
  if (leg === 'agent') return row.agentNumber;
  if (leg === 'customer') return row.customerNumber;
  const number = guestNumbers.get(leg);
  if (number === undefined) throw new Error('a leg without a number was to be dialed');
  return number;
}

interface DialogPortOptions {
  sip: SipGateway;
  sql: Sql;
  secrets: SecretBox;
  registry: CallRegistry;
  logger: Logger;
}

/** What the SIP side needs to know of a trunk, its password opened. */
export function trunkEndpoint(trunk: TrunkRow, secrets: SecretBox): TrunkEndpoint {
  return {
    sipUri: trunk.sipUri,
    transport: trunk.transport === 'tcp' ? 'tcp' : 'udp',
    username: trunk.username,
    password: trunk.passwordEncrypted ? secrets.open(trunk.passwordEncrypted, trunkPasswordContext(trunk.id)) : null,
    codecs: trunk.codecs.filter((name): name is Codec => name in CODECS),
    hasComfortNoise: trunk.codecs.includes('CN'),
    mediaEncryption: trunk.mediaEncryption,
  };
}
