import { LEAST_SESSION_S, parseSessionExpires, splitList } from './message/index.ts';
import type { DialRequest } from './sip-gateway.ts';
import type { SrfReceivedRequest, SrfReply, SrfRequestOptions, SrfSentRequest } from './srf-types.ts';
import { calledUri, dialable, nextHopOf } from './trunk.ts';

export const ALLOWED_METHODS = 'INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE';

export function allowedBy({ onReferral }: Pick<DialRequest, 'onReferral'>): string {
  return onReferral === undefined ? ALLOWED_METHODS : `${ALLOWED_METHODS}, REFER`;
}

export interface LegInvite {
  uri: string;
  options: SrfRequestOptions;
}

/**
 * The INVITE of a leg, with the caller id in From and P-Asserted-Identity.
 * @throws SipError `trunk.bad_uri`, `number.malformed`
 */
export function firstInvite(request: DialRequest, ownHost: string, offer: string): LegInvite {
  const uri = calledUri(request.trunk, request.calledNumber);
  const caller = `<sip:${dialable(request.callerId)}@${ownHost}>`;
  const headers = {
    From: caller,
    To: `<${uri.replace(/;.*$/, '')}>`,
    'P-Asserted-Identity': caller,
    'X-Tandem-Call-Id': headerSafe(request.callId),
    Allow: allowedBy(request),
    Supported: 'timer, 100rel',
    ...(request.replaces && { Replaces: request.replaces, Require: 'replaces' }),
    ...sessionHeaders(SESSION_S),
    'User-Agent': 'Tandem',
    'Content-Type': 'application/sdp',
  };
  return { uri, options: { ...nextHopOf(request.trunk), method: 'INVITE', headers, body: offer } };
}

/** Session interval without a demand of the peer (RFC 4028 §4). */
export const SESSION_S = 1800;

/** Rejects a request with too short a session (RFC 4028 §9). Returns whether it did. */
export function rejectsShortSession(request: Pick<SrfReceivedRequest, 'get'>, reply: SrfReply): boolean {
  const wanted = parseSessionExpires(request.get('Session-Expires'));
  if (wanted === null || wanted.seconds >= LEAST_SESSION_S) return false;
  reply.send(422, { headers: { 'Min-SE': `${LEAST_SESSION_S}` } });
  return true;
}

/**
 * Rejects a request that requires an extension other than session timers (RFC 3261 §8.2.2.3): a call with `replaces`
 * would ring beside the one that it takes over. Returns whether it did. Never rejects ACK and CANCEL, which have no 420,
 * nor BYE, whose call ends in any case.
 */
export function rejectsExtensions(request: Pick<SrfReceivedRequest, 'method' | 'get'>, reply: SrfReply): boolean {
  if (NEVER_REJECTED.has(request.method)) return false;
  const unsupported = splitList(request.get('Require') ?? '').filter((option) => option.toLowerCase() !== 'timer');
  if (unsupported.length === 0) return false;
  reply.send(420, { headers: { Unsupported: unsupported.join(', ') } });
  return true;
}

const NEVER_REJECTED: ReadonlySet<string> = new Set(['ACK', 'CANCEL', 'BYE']);

/** Requests refreshes from the peer, because a refresh of ours could be challenged. */
export function sessionHeaders(seconds: number, leastS: number = LEAST_SESSION_S): Record<string, string> {
  return { 'Session-Expires': `${seconds};refresher=uas`, 'Min-SE': `${leastS}` };
}

/**
 * Repeats an INVITE with other headers, such as the answer to a challenge (RFC 3261 §22.2): same Call-ID and From, CSeq
 * plus one. Null if the sent CSeq is unknown.
 */
export function invitedAgain(
  invite: LegInvite,
  sent: SrfSentRequest,
  { changes, nextHop }: { changes: Record<string, string>; nextHop: string | null },
): LegInvite | null {
  const sequence = Number.parseInt(sent.get('CSeq') ?? '', 10);
  if (Number.isNaN(sequence)) return null;
  const headers = {
    ...invite.options.headers,
    From: sent.get('From') ?? '',
    'Call-ID': sent.get('Call-ID') ?? '',
    CSeq: `${sequence + 1} INVITE`,
    ...changes,
  };
  const options = { ...invite.options, headers };
  return { uri: invite.uri, options: nextHop === null ? options : { ...options, proxy: nextHop } };
}

function headerSafe(value: string): string {
  return value.replace(/[^\x21-\x7e]/g, '');
}
