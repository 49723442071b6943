import { isIP } from 'node:net';
import { type ErrorCode, TandemError } from '../../machines/errors.ts';
import type { Resolve } from './dns-resolve.ts';
import { createDnsResolve } from './dns-resolve.ts';
import type { Cidr } from './public-address.ts';
import { classifyAddress } from './public-address.ts';

export type { Resolve };

export interface CheckOptions {
  /** The operator's `CALLBACK_ALLOW_CIDRS`, from `parseCidrs`. Empty: public HTTPS only. */
  allowCidrs: readonly Cidr[];
  /** Default: the system's DNS servers. */
  resolve?: Resolve;
  signal?: AbortSignal;
  /** Error code and field of a refusal. Default: those of a call's `callback_url`. */
  refusedAs?: UrlRefusal;
}

export interface UrlRefusal {
  code: ErrorCode;
  field: string;
}

export interface CheckedUrl {
  /** Normalised by the WHATWG URL rules, without fragment. Store and request this URL. */
  url: URL;
  /** Host without brackets and trailing dot: the TLS name, or an IP literal. */
  hostname: string;
  /** All checked addresses of the host, never empty. Connect only to these. */
  addresses: readonly string[];
}

/**
 * Decides whether callbacks may go to a URL. Call it when the URL is given and before every attempt, because DNS may
 * change (rebinding). Then connect to the returned addresses without another look-up. Only public HTTPS is allowed.
 * Exception: if the operator's list has every address, any name and plain http are allowed.
 * @throws TandemError `INVALID_CALLBACK_URL`, or the code of `refusedAs`
 */
export async function checkCallbackUrl(text: string, options: CheckOptions): Promise<CheckedUrl> {
  const refuse = refusalOf(options.refusedAs ?? { code: 'INVALID_CALLBACK_URL', field: 'callback_url' });
  const url = parse(text, refuse);
  const hostname = hostnameOf(url, refuse);
  const nameIsInternal = isIP(hostname) === 0 && isInternalName(hostname);
  const mayBeAllowed = options.allowCidrs.length > 0;
  if (!mayBeAllowed && url.protocol !== 'https:') throw refuse('must be an https URL.');
  if (!mayBeAllowed && nameIsInternal) throw refuse('must name a host on the public internet.');

  const addresses = await addressesOf(hostname, { ...options, refuse });
  const classes = addresses.map((address) => classifyAddress(address, options.allowCidrs));
  if (classes.includes('refused')) {
    throw refuse('must resolve to public addresses only: private, local and reserved ones are refused.');
  }
  const allAllowed = classes.every((addressClass) => addressClass === 'allowed');
  if (!allAllowed && url.protocol !== 'https:') throw refuse('must be an https URL.');
  if (!allAllowed && nameIsInternal) throw refuse('must name a host on the public internet.');
  return { url, hostname, addresses };
}

/** Whether a refusal says nothing about the URL, because the name servers are unreachable. */
export function isLookupFailure(error: unknown): boolean {
  const cause = error instanceof TandemError ? (error.cause as { code?: string } | undefined) : undefined;
  return cause?.code !== undefined && LOOKUP_FAILURES.has(cause.code);
}

const LOOKUP_FAILURES = new Set(['ETIMEOUT', 'ESERVFAIL', 'ECONNREFUSED', 'ECANCELLED', 'EREFUSED']);
const MAX_URL_CHARACTERS = 2048;

function parse(text: string, refuse: Refuse): URL {
  if (text.length > MAX_URL_CHARACTERS) throw refuse(`is over ${MAX_URL_CHARACTERS} characters.`);
  const url = URL.parse(text);
  if (url === null) throw refuse('is not a URL.');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refuse('must be an https URL.');
  if (url.username !== '' || url.password !== '') {
    throw refuse('must not carry credentials: receivers verify the signature instead.');
  }
  if (url.port === '0') throw refuse('has port 0.');
  url.hash = '';
  return url;
}

/** Drops one trailing dot, the DNS root. Any other empty label is invalid. */
function hostnameOf(url: URL, refuse: Refuse): string {
  const hostname = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const isName = isIP(hostname) === 0;
  if (hostname === '' || (isName && (hostname.length > 253 || hostname.split('.').includes('')))) {
    throw refuse('has no valid host.');
  }
  return hostname;
}

/** Names with meaning only inside a network (RFC 6761, RFC 6762, RFC 8375, RFC 9476 and common usage). */
const INTERNAL_SUFFIXES = [
  'localhost',
  'localdomain',
  'local',
  'internal',
  'intranet',
  'private',
  'corp',
  'home',
  'lan',
  'home.arpa',
  'onion',
  'alt',
];

function isInternalName(hostname: string): boolean {
  return (
    !hostname.includes('.') ||
    INTERNAL_SUFFIXES.some((suffix) => hostname === suffix || hostname.endsWith(`.${suffix}`))
  );
}

const resolveBySystemServers = createDnsResolve();

async function addressesOf(
  hostname: string,
  { refuse, ...options }: CheckOptions & { refuse: Refuse },
): Promise<readonly string[]> {
  if (isIP(hostname) !== 0) return [hostname];
  if (hostname === 'localhost' || hostname.endsWith('.localhost')) {
    // RFC 6761 §6.3: always loopback, so do not query DNS. Omit the address family that the operator did not allow.
    const open = ['127.0.0.1', '::1'].filter((it) => classifyAddress(it, options.allowCidrs) === 'allowed');
    return open.length > 0 ? open : ['127.0.0.1'];
  }
  const resolve = options.resolve ?? resolveBySystemServers;
  let addresses: readonly string[];
  try {
    addresses = await resolve(hostname, options.signal);
  } catch (cause) {
    options.signal?.throwIfAborted();
    throw refuse('names a host that does not resolve.', cause);
  }
  if (addresses.length === 0) throw refuse('names a host that does not resolve.');
  return addresses;
}

/** Creates an error from the rest of a sentence that begins with the field's name. */
type Refuse = (reason: string, cause?: unknown) => TandemError;

function refusalOf({ code, field }: UrlRefusal): Refuse {
  return (reason, cause) => new TandemError(code, `${field} ${reason}`, cause === undefined ? {} : { cause });
}
