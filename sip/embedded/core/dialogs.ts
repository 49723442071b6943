import {
  header,
  headers,
  parseNameAddr,
  parseUri,
  type SipMessage,
  type SipRequest,
  tagOf,
} from '../../message/index.ts';
import { InviteServerTransaction } from '../transactions/invite-server.ts';
import type { IncomingTransaction } from '../transactions/layer.ts';
import type { Remote } from '../transport/remote.ts';
import type { Application } from './application.ts';

/** RFC 3261 §12. */
export interface Dialog {
  /** As the application knows it: `Call-ID;from-tag=<From tag of the INVITE>`, whoever sent that INVITE. */
  readonly id: string;
  readonly role: 'uac' | 'uas';
  readonly application: Application;
  readonly callId: string;
  readonly localTag: string;
  /** Empty for RFC 2543 peers. */
  readonly remoteTag: string;
  /** Whole From or To values, tags included. */
  readonly localAddress: string;
  readonly remoteAddress: string;
  state: 'early' | 'confirmed' | 'ended';
  localSequence: number;
  remoteSequence: number | null;
  remoteTarget: string;
  routeSet: readonly string[];
  /** Our INVITE whose 2xx the application has not acknowledged yet. */
  unacknowledged: {
    invite: SipRequest;
    transactionId: string;
    /** Hang up after that ACK, and why. */
    endAfterAck: EndReason | null;
    stopTimer: () => void;
  } | null;
  /** The ACK we sent last, to be repeated when its 2xx is. */
  lastAck: { sequence: number; request: SipRequest; remote: Remote } | null;
  /** True from our re-INVITE to its final response. */
  isInviting: boolean;
  /** The peer's INVITE that has no final response yet, or whose 2xx has no ACK yet. */
  incomingInvite: IncomingTransaction | null;
  stopSessionTimers: () => void;
  /** Our SDP in force, for a re-INVITE that changes nothing. Null until it is known. */
  localDescription: Buffer | null;
  /** By the Allow header that the peer sent last; true until then. */
  peerTakesUpdate: boolean;
  /** RSeq of the last reliable provisional response to our INVITE; 0 before. */
  reliableSequence: number;
  /** Where its INVITE came from or went to. Over TLS its requests go there if their target is only an address. */
  readonly flow: Remote;
}

/** Written into the Reason header (RFC 3326). */
export interface EndReason {
  cause: number;
  text: string;
}

/** Ends a dialog that its application cannot or will not end: BYE to the peer, and the same BYE to the application. */
export type EndDialog = (dialog: Dialog, reason: EndReason) => void;

export class DialogTable {
  readonly #byId = new Map<string, Dialog>();
  readonly #byTags = new Map<string, Dialog>();
  /** Ids of INVITEs on their way, which will have dialogs when they are answered. */
  readonly #reserved = new Map<string, number>();

  get size(): number {
    return this.#byTags.size;
  }

  /** The newest fork that was added under an id is the one the id stands for. */
  add(dialog: Dialog): void {
    this.#byId.set(dialog.id, dialog);
    this.#byTags.set(tagsKey(dialog.callId, dialog.localTag, dialog.remoteTag), dialog);
  }

  remove(dialog: Dialog): void {
    dialog.state = 'ended';
    // With the dialog goes the ACK that would end the repetitions of a 2xx.
    const server = dialog.incomingInvite?.server;
    if (server instanceof InviteServerTransaction) server.acknowledged();
    dialog.unacknowledged?.stopTimer();
    dialog.unacknowledged = null;
    dialog.stopSessionTimers();
    if (this.#byId.get(dialog.id) === dialog) this.#byId.delete(dialog.id);
    this.#byTags.delete(tagsKey(dialog.callId, dialog.localTag, dialog.remoteTag));
  }

  withId(id: string): Dialog | null {
    const dialog = this.#byId.get(id);
    return dialog && dialog.state !== 'ended' ? dialog : null;
  }

  withTags(callId: string, localTag: string, remoteTag: string): Dialog | null {
    return this.#byTags.get(tagsKey(callId, localTag, remoteTag)) ?? null;
  }

  /** Until `release`, which must be called as often: the second INVITE after a challenge has the id of the first. */
  reserve(id: string): void {
    this.#reserved.set(id, (this.#reserved.get(id) ?? 0) + 1);
  }

  release(id: string): void {
    const count = (this.#reserved.get(id) ?? 0) - 1;
    if (count > 0) this.#reserved.set(id, count);
    else this.#reserved.delete(id);
  }

  /**
   * The id of a dialog that we answer. When the application called itself through us, its other end has the usual id
   * already.
   */
  freeId(callId: string, fromTag: string): string {
    const id = dialogId(callId, fromTag);
    if (!this.#byId.has(id) && !this.#reserved.has(id)) return id;
    let free = `${id};uas`;
    for (let count = 2; this.#byId.has(free); count++) free = `${id};uas${count}`;
    return free;
  }

  of(application: Application): Dialog[] {
    return [...this.#byTags.values()].filter((dialog) => dialog.application === application);
  }
}

export function dialogId(callId: string, fromTag: string): string {
  // The id stands in a line that is cut at `|`.
  return `${callId};from-tag=${fromTag}`.replaceAll('|', '%7C');
}

/** Keeps the SDP of an accepted request or response of ours. A message without SDP changes nothing. */
export function keepDescription(dialog: Dialog, ours: SipMessage): void {
  const type = (header(ours, 'content-type') ?? 'application/sdp').toLowerCase();
  if (ours.body.length > 0 && type.startsWith('application/sdp')) dialog.localDescription = ours.body;
}

/** Keeps whether the peer takes UPDATE (RFC 3311 §5.1). A message without Allow changes nothing. */
export function keepAllowed(dialog: Dialog, theirs: SipMessage): void {
  const allowed = headers(theirs, 'allow');
  if (allowed.length > 0) dialog.peerTakesUpdate = allowed.some((method) => method.trim().toUpperCase() === 'UPDATE');
}

/** URI of the Contact, or null when there is none that a request could be sent to. */
export function contactUri(message: SipMessage): string | null {
  return addressUri(header(message, 'contact') ?? '');
}

/** Where requests to a caller go. Callers of RFC 2543, which need no Contact, are reached by their From (§6.13 there). */
export function callerUri(invite: SipRequest): string | null {
  return contactUri(invite) ?? (isOldCaller(invite) ? addressUri(header(invite, 'from') ?? '') : null);
}

/** Callers of RFC 3261 have a tag. */
export function isOldCaller(invite: SipRequest): boolean {
  return tagOf(header(invite, 'from')) === null;
}

function addressUri(address: string): string | null {
  try {
    const { uri } = parseNameAddr(address);
    parseUri(uri);
    return uri;
  } catch {
    return null;
  }
}

/**
 * Record-Route as seen by the caller's side, or by the side that answers (RFC 3261 §12.1). What no request could be
 * routed by is left out.
 */
export function routeSetOf(message: SipMessage, role: 'uac' | 'uas'): string[] {
  const routes = headers(message, 'record-route').filter(isRoute);
  return role === 'uac' ? routes.reverse() : routes;
}

function isRoute(value: string): boolean {
  try {
    parseUri(parseNameAddr(value).uri);
    return true;
  } catch {
    return false;
  }
}

function tagsKey(callId: string, localTag: string, remoteTag: string): string {
  return `${callId}\n${localTag}\n${remoteTag}`;
}
