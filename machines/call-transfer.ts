import { isHeld, isTalking, type Talk, talkWithout } from './call-control.ts';
import { isLegName, type LegId, type LegName, type Transfer, type TransferRequester } from './events.ts';

/** Transfers: one leg of a talk replaces another. Serialisable data and pure functions. */

/** The legs that occupy the two places of a call. */
export function principalsOf({ standIns }: Pick<Talk, 'standIns'>): Record<LegName, LegId> {
  const principals: Record<LegName, LegId> = { agent: 'agent', customer: 'customer' };
  for (const [leg, place] of Object.entries(standIns)) principals[place] = leg;
  return principals;
}

/** The place of a leg; null for an added leg without one, and for a leg that has left. */
export function placeOf(talk: Pick<Talk, 'standIns'>, leg: LegId): LegName | null {
  const { agent, customer } = principalsOf(talk);
  if (leg === agent) return 'agent';
  return leg === customer ? 'customer' : null;
}

/** A new transfer: `target` is dialed to replace `leaving`. */
export function transferOf(
  talk: Pick<Talk, 'standIns'>,
  { leaving, target, mode, requestedBy = 'api' }: NewTransfer,
): Transfer {
  const place = placeOf(talk, leaving) ?? 'agent';
  const staying = principalsOf(talk)[place === 'agent' ? 'customer' : 'agent'];
  return { leaving, staying, target, place, mode, requestedBy };
}

interface NewTransfer extends Pick<Transfer, 'leaving' | 'target' | 'mode'> {
  /** Default: `api`. */
  requestedBy?: TransferRequester | undefined;
}

/** The talk after the leaving leg hung up, before its successor talks. */
export function withoutLeaving(talk: Talk, leg: LegId): Talk {
  return isLegName(leg) ? { ...talk, left: [...talk.left, leg] } : talkWithout(talk, leg);
}

/** The parties of a transfer that are on hold. They talk with each other once it is completed. */
export function heldInTransfer(talk: Talk): LegId[] {
  const { transfer } = talk;
  return transfer === null ? [] : [transfer.staying, transfer.target].filter((leg) => isHeld(talk, leg));
}

/** The leaving leg, if it is on hold although a consultation begins, in which it talks with the target. */
export function heldInConsultation(talk: Talk): LegId[] {
  const { transfer } = talk;
  if (transfer?.mode !== 'attended' || !isTalking(talk, transfer.leaving)) return [];
  return isHeld(talk, transfer.leaving) ? [transfer.leaving] : [];
}

export function withoutHolds(talk: Talk, legs: readonly LegId[]): Talk {
  return { ...talk, held: { ...talk.held, ...Object.fromEntries(legs.map((leg) => [leg, null])) } };
}

/** The talk once the target has taken its place, without the transfer, its holds and the leaving leg. */
export function talkAfterTransfer(talk: Talk): Talk {
  const { transfer } = talk;
  if (transfer === null) return talk;
  const { leaving, target, place } = transfer;
  const { [leaving]: _, ...standIns } = talk.standIns;
  const rest = isTalking(talk, leaving) ? withoutLeaving(talk, leaving) : talk;
  return { ...withoutHolds(rest, heldInTransfer(talk)), transfer: null, standIns: { ...standIns, [target]: place } };
}
