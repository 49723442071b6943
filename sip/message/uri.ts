import { isIPv6 } from 'node:net';
import { SipParseError } from './parse-error.ts';

/** A `sip:` or `sips:` URI (RFC 3261 §19.1). Escapes stay as written. */
export interface SipUri {
  scheme: 'sip' | 'sips';
  user: string | null;
  password: string | null;
  /** Lower case; an IPv6 reference keeps its brackets. */
  host: string;
  port: number | null;
  /** Names in lower case; flags such as `lr` are `null`. */
  params: Map<string, string | null>;
  /** Text after `?`, unparsed. */
  headers: string | null;
}

/** @throws SipParseError `UNKNOWN_URI_SCHEME` for other schemes (tel included), else `BAD_URI`. */
export function parseUri(text: string): SipUri {
  const scheme = uriScheme(text);
  if (scheme !== 'sip' && scheme !== 'sips') {
    throw new SipParseError(scheme === null ? 'BAD_URI' : 'UNKNOWN_URI_SCHEME', 'The URI is not a sip or sips URI');
  }
  if (text.length > MAX_URI_LENGTH || ILLEGAL_IN_URI.test(text)) {
    throw new SipParseError('BAD_URI', 'The URI holds characters that a URI cannot hold');
  }
  let rest = text.slice(scheme.length + 1);

  // The user part may contain `;` and `?` (RFC 3261 §25.1 user-unreserved), so it is removed first.
  let user: string | null = null;
  let password: string | null = null;
  const at = rest.indexOf('@');
  if (at !== -1) {
    const userInfo = rest.slice(0, at);
    rest = rest.slice(at + 1);
    const colon = userInfo.indexOf(':');
    user = colon === -1 ? userInfo : userInfo.slice(0, colon);
    password = colon === -1 ? null : userInfo.slice(colon + 1);
    if (user === '') throw new SipParseError('BAD_URI', 'The URI has an empty user part');
  }

  let headers: string | null = null;
  const question = rest.indexOf('?');
  if (question !== -1) {
    headers = rest.slice(question + 1);
    rest = rest.slice(0, question);
  }
  const semicolon = rest.indexOf(';');
  const hostPort = semicolon === -1 ? rest : rest.slice(0, semicolon);
  const { host, port } = parseHostPort(hostPort);
  return { scheme, user, password, host, port, params: parseUriParameters(rest, semicolon), headers };
}

export function formatUri(uri: SipUri): string {
  let text = `${uri.scheme}:`;
  if (uri.user !== null) text += `${uri.user}${uri.password === null ? '' : `:${uri.password}`}@`;
  text += uri.host;
  if (uri.port !== null) text += `:${uri.port}`;
  for (const [name, value] of uri.params) text += value === null ? `;${name}` : `;${name}=${value}`;
  if (uri.headers !== null) text += `?${uri.headers}`;
  return text;
}

/** An address in the form of URIs and Via: IPv6 in brackets. */
export function uriHost(address: string): string {
  return isIPv6(address) ? `[${address}]` : address;
}

/** Inverse of `uriHost`. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** Lower-case scheme of any absolute URI; `null` without one. */
export function uriScheme(text: string): string | null {
  const match = /^([A-Za-z][A-Za-z0-9+.-]{0,31}):/.exec(text);
  return match?.[1]?.toLowerCase() ?? null;
}

/**
 * Parses `host[:port]`, with IPv6 references in brackets.
 * @throws SipParseError `BAD_URI`.
 */
export function parseHostPort(text: string): { host: string; port: number | null } {
  const match = HOST_PORT.exec(text);
  const host = match?.[1]?.toLowerCase();
  if (host === undefined) throw new SipParseError('BAD_URI', 'The host is not a host name or an address');
  if (match?.[2] === undefined) return { host, port: null };
  const port = Number(match[2]);
  if (port < 1 || port > 65_535) throw new SipParseError('BAD_URI', 'The port is not 1 to 65535');
  return { host, port };
}

function parseUriParameters(text: string, semicolon: number): Map<string, string | null> {
  const params = new Map<string, string | null>();
  if (semicolon === -1) return params;
  for (const part of text.slice(semicolon + 1).split(';')) {
    const equals = part.indexOf('=');
    const name = (equals === -1 ? part : part.slice(0, equals)).toLowerCase();
    if (name === '' || params.has(name)) continue;
    params.set(name, equals === -1 ? null : part.slice(equals + 1));
  }
  return params;
}

const MAX_URI_LENGTH = 4096;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what is refused
const ILLEGAL_IN_URI = /[\u0000-\u0020"<>\\^`{|}\u007f]/;
const HOST_PORT = /^([A-Za-z0-9](?:[A-Za-z0-9_.-]{0,253}[A-Za-z0-9.])?|\[[0-9A-Fa-f:.]{2,45}\])(?:\s*:\s*(\d{1,5}))?$/;
