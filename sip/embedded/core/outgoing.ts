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

/** Our own address as peers see it. */
export interface LocalAddress {
  host: string;
  port: number;
  /** Null: nobody can connect over TLS. Via and Contact then name the standard port, and peers reuse our connections. */
  tlsPort: number | null;
}

/** What the application may not set: the server's own business, or read elsewhere. */
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
 * A request outside any dialog, or inside one that the server does not know because an earlier process had it: then To has
 * a tag, and the application gives the Route headers. From tag, Call-ID and CSeq are the application's when it gave them: the second attempt
 * after a 401 or 407 depends on it.
 * @throws SipParseError when From, To or Contact cannot be read.
 */
export function newRequest(asked: SipRequest, local: LocalAddress, transport: TransportName): SipRequest {
  const contact = header(asked, 'contact');
  const from = parseNameAddr(header(asked, 'from') ?? contact ?? `<sip:${uriHost(local.host)}>`);
  const to = parseNameAddr(header(asked, 'to') ?? `<${asked.uri}>`);
  if (header(asked, 'from') === undefined) from.params.clear();
  if (!from.params.get('tag')) from.params.set('tag', newTag());
  from.uri = withoutLocalhost(from.uri, local, null);
  to.uri = withoutLocalhost(to.uri, local, null);

  const request = createRequest({
    method: asked.method,
    uri: asked.uri,
    headers: [
      ['Via', newVia(local, transport)],
      ['Max-Forwards', maxForwards(asked)],
      ['From', formatNameAddr(from)],
      ['To', formatNameAddr(to)],
      ['Call-ID', header(asked, 'call-id') || newCallId()],
      ['CSeq', `${askedSequence(asked) ?? firstSequence()} ${asked.method}`],
    ],
    body: asked.body,
  });
  if (to.params.get('tag')) request.headers.push(...asked.headers.filter(({ key }) => key === 'route'));
  addApplicationHeaders(request, asked, local, transport);
  return request;
}

/**
 * A request inside a dialog, routed as RFC 3261 §12.2.1.1 wants it. ACK takes the number and credentials of `invite`.
 * @throws SipParseError when the application's Contact cannot be read.
 */
export function inDialogRequest(options: {
  dialog: Dialog;
  method: string;
  asked: SipRequest | null;
  /** For ACK: what it acknowledges. */
  invite?: SipRequest;
  local: LocalAddress;
  transport: TransportName;
}): SipRequest {
  const { dialog, method, asked, invite, local, transport } = options;
  const { uri, routes } = routing(dialog);
  const sequence = invite ? sequenceOf(invite) : nextSequence(dialog, asked);
  const request = createRequest({
    method,
    uri,
    headers: [
      ['Via', newVia(local, transport)],
      ['Max-Forwards', asked ? maxForwards(asked) : '70'],
      ...routes.map((route) => ['Route', route] as const),
      ['From', dialog.localAddress],
      ['To', dialog.remoteAddress],
      ['Call-ID', dialog.callId],
      ['CSeq', `${sequence} ${method}`],
    ],
    body: asked?.body ?? Buffer.alloc(0),
  });
  if (asked) addApplicationHeaders(request, asked, local, transport);
  // RFC 3261 §13.2.2.4: an ACK must pass where the INVITE did.
  for (const credentials of ['authorization', 'proxy-authorization']) {
    if (!invite || hasHeader(request, credentials)) continue;
    request.headers.push(...invite.headers.filter(({ key }) => key === credentials));
  }
  return request;
}

/** The URI whose host a dialog's requests are sent to. */
export function dialogNextHop(dialog: Dialog): string {
  const first = dialog.routeSet[0];
  return first === undefined ? dialog.remoteTarget : parseNameAddr(first).uri;
}

/** Copies what the application may set, and completes Contact and Content-Type. @throws SipParseError. */
export function addApplicationHeaders(
  message: SipMessage,
  asked: SipMessage,
  local: LocalAddress,
  transport: TransportName,
  isSecure = message.kind === 'request' && isSips(message.uri),
): void {
  for (const each of asked.headers) {
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

/** `isSecure`: the request URI is `sips`, and so must the Contact be (RFC 3261 §8.1.1.8, §12.1.1). */
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
  // `alias`: requests of the peer may come back on this connection (RFC 5923 §5).
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

function askedSequence(asked: SipRequest): number | null {
  const match = /^\s*(\d{1,10})/.exec(header(asked, 'cseq') ?? '');
  const sequence = match ? Number(match[1]) : Number.NaN;
  return sequence <= 0x7fff_ffff ? sequence : null;
}

function nextSequence(dialog: Dialog, asked: SipRequest | null): number {
  dialog.localSequence = Math.max(dialog.localSequence + 1, (asked && askedSequence(asked)) ?? 0);
  return dialog.localSequence;
}

function maxForwards(asked: SipRequest): string {
  const value = header(asked, 'max-forwards') ?? '';
  return /^\d{1,2}$/.test(value) ? value : '70';
}

/** Loose routing, or the older strict one when the first route has no `lr`. */
function routing(dialog: Dialog): { uri: string; routes: readonly string[] } {
  const [first, ...rest] = dialog.routeSet;
  if (first === undefined) return { uri: dialog.remoteTarget, routes: [] };
  const firstUri = parseUri(parseNameAddr(first).uri);
  if (firstUri.params.has('lr')) return { uri: dialog.remoteTarget, routes: dialog.routeSet };
  firstUri.headers = null;
  return { uri: formatUri(firstUri), routes: [...rest, `<${dialog.remoteTarget}>`] };
}

/** `localhost` in what the application wrote stands for the address it cannot know; bare URIs gain brackets. */
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

/** A Contact must be reachable, so it gets port and transport too. */
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
