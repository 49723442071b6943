import { randomBytes } from 'node:crypto';
import {
  appendHeader,
  createRequest,
  formatNameAddr,
  formatUri,
  hasHeader,
  header,
  headers,
  parseNameAddr,
  parseUri,
  type SipHeader,
  type SipMessage,
  SipParseError,
  type SipRequest,
  uriHost,
} from '../../message/index.ts';
import type { TransportName } from '../transport/remote.ts';
import type { Dialog } from './dialogs.ts';

/** Our own address for peers. */
export interface LocalAddress {
  host: string;
  port: number;
  /** Null: no TLS port. Via and Contact then name the standard port, and peers reuse our connections. */
  tlsPort: number | null;
}

/** Headers that the server sets itself or handles elsewhere. */
const NOT_TAKEN: ReadonlySet<string> = new Set([
  'via',
  'route',
  'record-route',
  'rseq',
  'content-length',
  'from',
  'to',
  'call-id',
  'cseq',
  'max-forwards',
]);

const TARGET_REFRESH: ReadonlySet<string> = new Set(['INVITE', 'SUBSCRIBE', 'REFER', 'UPDATE', 'NOTIFY']);

/**
 * Builds a request outside any dialog, or in a dialog of an earlier process: then To has a tag, and the application
 * gives the Route headers. Keeps From tag, Call-ID and CSeq of the application, which a retry after 401 or 407 needs.
 * @throws SipParseError if From, To or Contact is invalid.
 */
export function newRequest(draft: SipRequest, local: LocalAddress, transport: TransportName): SipRequest {
  const contact = header(draft, 'contact');
  const from = parseNameAddr(header(draft, 'from') ?? contact ?? `<sip:${uriHost(local.host)}>`);
  const to = parseNameAddr(header(draft, 'to') ?? `<${draft.uri}>`);
  if (header(draft, 'from') === undefined) from.params.clear();
  if (!from.params.get('tag')) from.params.set('tag', newTag());
  from.uri = withoutLocalhost(from.uri, local, null);
  to.uri = withoutLocalhost(to.uri, local, null);

  const request = createRequest({
    method: draft.method,
    uri: draft.uri,
    headers: [
      ['Via', newVia(local, transport)],
      ['Max-Forwards', maxForwards(draft)],
      ['From', formatNameAddr(from)],
      ['To', formatNameAddr(to)],
      ['Call-ID', header(draft, 'call-id') || newCallId()],
      ['CSeq', `${draftSequence(draft) ?? firstSequence()} ${draft.method}`],
    ],
    body: draft.body,
  });
  if (to.params.get('tag')) request.headers.push(...draft.headers.filter(({ key }) => key === 'route'));
  addApplicationHeaders(request, draft, local, transport);
  return request;
}

/**
 * Builds an in-dialog request, routed by RFC 3261 §12.2.1.1. ACK takes the number and credentials of `invite`.
 * @throws SipParseError if the application's Contact is invalid.
 */
export function inDialogRequest(options: {
  dialog: Dialog;
  method: string;
  draft: SipRequest | null;
  invite?: SipRequest;
  local: LocalAddress;
  transport: TransportName;
}): SipRequest {
  const { dialog, method, draft, invite, local, transport } = options;
  const { uri, routes } = routing(dialog);
  const sequence = invite ? sequenceOf(invite) : nextSequence(dialog, draft);
  const request = createRequest({
    method,
    uri,
    headers: [
      ['Via', newVia(local, transport)],
      ['Max-Forwards', draft ? maxForwards(draft) : '70'],
      ...routes.map((route) => ['Route', route] as const),
      ['From', dialog.localAddress],
      ['To', dialog.remoteAddress],
      ['Call-ID', dialog.callId],
      ['CSeq', `${sequence} ${method}`],
    ],
    body: draft?.body ?? Buffer.alloc(0),
  });
  if (draft) addApplicationHeaders(request, draft, local, transport);
  // RFC 3261 §13.2.2.4: an ACK needs the credentials of the INVITE.
  for (const credentials of ['authorization', 'proxy-authorization']) {
    if (!invite || hasHeader(request, credentials)) continue;
    request.headers.push(...invite.headers.filter(({ key }) => key === credentials));
  }
  return request;
}

export function dialogNextHop(dialog: Dialog): string {
  const first = dialog.routeSet[0];
  return first === undefined ? dialog.remoteTarget : parseNameAddr(first).uri;
}

/** Copies the headers that the application may set, and completes Contact and Content-Type. @throws SipParseError. */
export function addApplicationHeaders(
  message: SipMessage,
  draft: SipMessage,
  local: LocalAddress,
  transport: TransportName,
  isSecure = message.kind === 'request' && isSips(message.uri),
): void {
  for (const each of draft.headers) {
    if (NOT_TAKEN.has(each.key)) continue;
    message.headers.push(localized(each, local, { transport, isSecure }));
  }
  if (message.kind === 'request' && TARGET_REFRESH.has(message.method) && !hasHeader(message, 'contact')) {
    appendHeader(message, 'Contact', defaultContact(local, transport, isSecure));
  }
  if (message.body.length > 0 && !hasHeader(message, 'content-type')) {
    if (message.body.toString('latin1', 0, 3) !== 'v=0') {
      throw new SipParseError('BAD_HEADER', 'A body that is not SDP needs a Content-Type');
    }
    appendHeader(message, 'Content-Type', 'application/sdp');
  }
}

/** `isSecure`: the request URI is `sips`, which the Contact must be too (RFC 3261 §8.1.1.8, §12.1.1). */
export function defaultContact(local: LocalAddress, transport: TransportName, isSecure: boolean): string {
  const scheme = isSecure ? 'sips' : 'sip';
  return `<${scheme}:${uriHost(local.host)}:${portOf(local, transport)}${transportParameter(transport, isSecure)}>`;
}

function portOf(local: LocalAddress, transport: TransportName): number {
  return transport === 'tls' ? (local.tlsPort ?? 5061) : local.port;
}

function transportParameter(transport: TransportName, isSecure: boolean): string {
  if (transport === 'udp') return '';
  return `;transport=${isSecure ? 'tcp' : transport}`;
}

export function isSips(uri: string): boolean {
  return /^sips:/i.test(uri);
}

interface ContactKind {
  transport: TransportName;
  isSecure: boolean;
}

export function newTag(): string {
  return randomBytes(10).toString('hex');
}

export function sequenceOf(message: SipMessage): number {
  return Number.parseInt(header(message, 'cseq') ?? '0', 10);
}

function newVia(local: LocalAddress, transport: TransportName): string {
  const branch = `z9hG4bK${randomBytes(16).toString('hex')}`;
  // `alias`: requests of the peer may reuse this connection (RFC 5923 §5).
  const alias = transport === 'tls' ? ';alias' : '';
  const sentBy = `${uriHost(local.host)}:${portOf(local, transport)}`;
  return `SIP/2.0/${transport.toUpperCase()} ${sentBy};branch=${branch};rport${alias}`;
}

function newCallId(): string {
  return randomBytes(16).toString('hex');
}

/** Below 2^31 with room to count (RFC 3261 §8.1.1.5). */
function firstSequence(): number {
  return 1 + (randomBytes(3).readUIntBE(0, 3) & 0xf_ffff);
}

function draftSequence(draft: SipRequest): number | null {
  const match = /^\s*(\d{1,10})/.exec(header(draft, 'cseq') ?? '');
  const sequence = match ? Number(match[1]) : Number.NaN;
  return sequence <= 0x7fff_ffff ? sequence : null;
}

function nextSequence(dialog: Dialog, draft: SipRequest | null): number {
  dialog.localSequence = Math.max(dialog.localSequence + 1, (draft && draftSequence(draft)) ?? 0);
  return dialog.localSequence;
}

function maxForwards(draft: SipRequest): string {
  const value = header(draft, 'max-forwards') ?? '';
  return /^\d{1,2}$/.test(value) ? value : '70';
}

/** Loose routing, or strict routing if the first route lacks `lr`. */
function routing(dialog: Dialog): { uri: string; routes: readonly string[] } {
  const [first, ...rest] = dialog.routeSet;
  if (first === undefined) return { uri: dialog.remoteTarget, routes: [] };
  const firstUri = parseUri(parseNameAddr(first).uri);
  if (firstUri.params.has('lr')) return { uri: dialog.remoteTarget, routes: dialog.routeSet };
  firstUri.headers = null;
  return { uri: formatUri(firstUri), routes: [...rest, `<${dialog.remoteTarget}>`] };
}

/** Replaces the application's `localhost` by our address, and adds brackets to bare URIs. */
function localized(line: SipHeader, local: LocalAddress, contact: ContactKind): SipHeader {
  if (line.key !== 'contact' && line.key !== 'p-asserted-identity') return line;
  const values = headers({ kind: 'request', method: '', uri: '', headers: [line], body: Buffer.alloc(0) }, line.key);
  const written = values.map((value) => {
    if (value === '*') return value;
    const address = parseNameAddr(value);
    address.uri = withoutLocalhost(address.uri, local, line.key === 'contact' ? contact : null);
    return formatNameAddr(address);
  });
  return { ...line, value: written.join(', ') };
}

/** A Contact must be reachable, so it also gets port and transport. */
function withoutLocalhost(uriText: string, local: LocalAddress, contact: ContactKind | null): string {
  if (!/^sips?:(?:[^@]*@)?localhost(?![\w.-])/i.test(uriText)) return uriText;
  const uri = parseUri(uriText);
  uri.host = uriHost(local.host);
  if (contact !== null) {
    const { transport, isSecure } = contact;
    uri.port = portOf(local, transport);
    if (isSecure) uri.scheme = 'sips';
    if (transport !== 'udp') uri.params.set('transport', isSecure ? 'tcp' : transport);
  }
  return formatUri(uri);
}
