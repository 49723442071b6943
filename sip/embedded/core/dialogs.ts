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
  /** Id for the application: `Call-ID;from-tag=<From tag of the INVITE>`, in either direction. */
  readonly id: string;
  readonly role: 'uac' | 'uas';
  readonly application: Application;
  readonly callId: string;
  readonly localTag: string;
  /** Empty for RFC 2543 peers. */
  readonly remoteTag: string;
  /** Whole From or To values, including tags. */
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
    /** If set, hang up after that ACK, with this reason. */
    endAfterAck: EndReason | null;
    stopTimer: () => void;
  } | null;
  /** Our last ACK, repeated for a repeated 2xx. */
  lastAck: { sequence: number; request: SipRequest; remote: Remote } | null;
  isInviting: boolean;
  /** The application has sent a BYE. */
  isHungUp: boolean;
  /** The peer's INVITE without a final response, or without an ACK of its 2xx. */
  incomingInvite: IncomingTransaction | null;
  stopSessionTimers: () => void;
  /** Our current SDP, for a re-INVITE that changes nothing. Null until known. */
  localDescription: Buffer | null;
  /** The peer's current SDP without its `o=` line, whose version may grow without a change. Null until known. */
  peerDescription: string | null;
  /** From the peer's last Allow header; true without one. */
  peerTakesUpdate: boolean;
  /** RSeq of the last reliable provisional response to our INVITE; 0 before. */
  reliableSequence: number;
  /**
   * Source or destination of its INVITE, with the connection of a caller's last request. Over TLS, requests to a bare
   * address use it.
   */
  flow: Remote;
}

/** For the Reason header (RFC 3326). */
export interface EndReason {
  cause: number;
  text: string;
  /** An application may send the BYE itself. */
  isApplications?: boolean;
}

/** Ends a dialog that its application cannot end: sends BYE to the peer, and the same BYE to the application. */
export type EndDialog = (dialog: Dialog, reason: EndReason) => void;

export class DialogTable {
  readonly #byId = new Map<string, Dialog>();
  readonly #byTags = new Map<string, Dialog>();
  /** Ids of pending INVITEs, which become dialogs when answered. */
  readonly #reserved = new Map<string, number>();

  get size(): number {
    return this.#byTags.size;
  }

  /** An id refers to the newest fork added under it. */
  add(dialog: Dialog): void {
    this.#byId.set(dialog.id, dialog);
    this.#byTags.set(tagsKey(dialog.callId, dialog.localTag, dialog.remoteTag), dialog);
  }

  remove(dialog: Dialog): void {
    dialog.state = 'ended';
    // Without the dialog, no ACK can stop the retransmissions of a 2xx.
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

  /** Reserves an id until `release`. Nested, because the INVITE after a challenge reuses the id. */
  reserve(id: string): void {
    this.#reserved.set(id, (this.#reserved.get(id) ?? 0) + 1);
  }

  release(id: string): void {
    const count = (this.#reserved.get(id) ?? 0) - 1;
    if (count > 0) this.#reserved.set(id, count);
    else this.#reserved.delete(id);
  }

  /** Id for a dialog that we answer. If the application calls itself through us, the other end has the usual id. */
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
  // The id is part of a line that is split at `|`.
  return `${callId};from-tag=${fromTag}`.replaceAll('|', '%7C');
}

/** Stores the SDP of our accepted request or response. A message without SDP changes nothing. */
export function keepDescription(dialog: Dialog, ours: SipMessage): void {
  if (hasDescription(ours)) dialog.localDescription = ours.body;
}

/** Stores the SDP of the peer's accepted request or response. */
export function keepPeerDescription(dialog: Dialog, theirs: SipMessage): void {
  if (hasDescription(theirs)) dialog.peerDescription = theirs.body.toString('latin1').replace(/^o=.*$/m, '');
}

/**
 * A caller behind NAT that has reconnected is reachable only over its new connection. A peer that we called keeps ours,
 * which over TLS proved its name: its own connection proves none.
 */
export function keepConnection(dialog: Dialog, { transport, host, connectionId }: Remote): void {
  const { role, flow } = dialog;
  const isSamePeer = transport === flow.transport && host === flow.host;
  if (role === 'uas' && isSamePeer) dialog.flow = { ...flow, connectionId };
}

function hasDescription(message: SipMessage): boolean {
  const type = (header(message, 'content-type') ?? 'application/sdp').toLowerCase();
  return message.body.length > 0 && type.startsWith('application/sdp');
}

/** Stores whether the peer supports UPDATE (RFC 3311 §5.1). A message without Allow changes nothing. */
export function keepAllowed(dialog: Dialog, theirs: SipMessage): void {
  const allowed = headers(theirs, 'allow');
  if (allowed.length > 0) dialog.peerTakesUpdate = allowed.some((method) => method.trim().toUpperCase() === 'UPDATE');
}

/** URI of the Contact; null if it is unusable. */
export function contactUri(message: SipMessage): string | null {
  return addressUri(header(message, 'contact') ?? '');
}

/** Target of requests to a caller. RFC 2543 callers may lack a Contact and are reached by their From (§6.13 there). */
export function callerUri(invite: SipRequest): string | null {
  return contactUri(invite) ?? (isOldCaller(invite) ? addressUri(header(invite, 'from') ?? '') : null);
}

/** RFC 3261 callers have a tag. */
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

/** Record-Route from the caller's or the callee's view (RFC 3261 §12.1). Skips invalid routes. */
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
