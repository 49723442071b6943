import {
  header,
  headers,
  parseCSeq,
  parseNameAddr,
  parseUri,
  parseVia,
  type SipRequest,
  uriScheme,
} from '../../message/index.ts';
import { isOldCaller } from './dialogs.ts';

export interface Refusal {
  statusCode: number;
  reasonPhrase: string;
  headers?: readonly (readonly [string, string])[];
}

/** Error of a parsed request (RFC 3261 §8.2, RFC 4475), or null. Does not check whether the method is supported. */
export function refusalOf(request: SipRequest): Refusal | null {
  for (const name of ['to', 'from', 'cseq', 'call-id']) {
    const lines = request.headers.filter(({ key }) => key === name);
    const [line] = lines;
    if (!line || line.value === '') return badRequest(`Missing ${line?.name ?? name} header`);
    if (lines.length > 1) return badRequest(`More than one ${line.name} header`);
  }
  if (request.method === 'INVITE' && header(request, 'contact') === undefined && !isOldCaller(request))
    return badRequest('Missing Contact header');
  return refusalOfSyntax(request) ?? refusalOfExtensions(request) ?? refusalOfContent(request);
}

function refusalOfSyntax(request: SipRequest): Refusal | null {
  try {
    if (parseCSeq(header(request, 'cseq') ?? '').method !== request.method)
      return badRequest('CSeq names another method');
    parseNameAddr(header(request, 'from') ?? '');
    parseNameAddr(header(request, 'to') ?? '');
    for (const via of headers(request, 'via')) parseVia(via);
    for (const route of headers(request, 'record-route')) parseUri(parseNameAddr(route).uri);
    const contacts = headers(request, 'contact').map((contact) => parseNameAddr(contact).uri);
    if (request.method === 'INVITE' && contacts[0] !== undefined) parseUri(contacts[0]);
    const scheme = uriScheme(request.uri);
    if (scheme === null) return badRequest('The request URI is not a URI');
    if (scheme === 'sip' || scheme === 'sips') {
      if (parseUri(request.uri).headers !== null) return badRequest('The request URI holds headers');
    } else if (scheme !== 'tel') return { statusCode: 416, reasonPhrase: 'Unsupported URI Scheme' };
  } catch {
    return badRequest('A header or the request URI cannot be read');
  }
  const hops = header(request, 'max-forwards');
  if (hops !== undefined && !(/^\d{1,10}$/.test(hops) && Number(hops) <= 255)) return badRequest('Bad Max-Forwards');
  return null;
}

/** RFC 3261 §8.2.2.3. ACK and CANCEL are exempt. */
function refusalOfExtensions(request: SipRequest): Refusal | null {
  if (request.method === 'ACK' || request.method === 'CANCEL') return null;
  const unsupported = headers(request, 'require').filter((option) => !SUPPORTED.has(option.toLowerCase()));
  if (unsupported.length === 0) return null;
  return { statusCode: 420, reasonPhrase: 'Bad Extension', headers: [['Unsupported', unsupported.join(', ')]] };
}

/**
 * RFC 3261 §8.2.3: the body of an INVITE must be SDP, alone or in a multipart body, unless marked as optional. §21.4.7:
 * the sender must accept SDP in return.
 */
function refusalOfContent(request: SipRequest): Refusal | null {
  if (request.method !== 'INVITE') return null;
  const type = mediaType(header(request, 'content-type') ?? '');
  const isOptional = /;\s*handling\s*=\s*"?optional\b/i.test(header(request, 'content-disposition') ?? '');
  if (request.body.length > 0 && type !== '' && type !== SDP && !type.startsWith('multipart/') && !isOptional) {
    return {
      statusCode: 415,
      reasonPhrase: 'Unsupported Media Type',
      headers: [['Accept', `${SDP}, multipart/mixed`]],
    };
  }
  const accepted = headers(request, 'accept').map(mediaType);
  if (accepted.length === 0 || accepted.some((each) => TAKES_SDP.has(each))) return null;
  return { statusCode: 406, reasonPhrase: 'Not Acceptable' };
}

function mediaType(value: string): string {
  return value.split(';', 1)[0]?.replace(/\s/g, '').toLowerCase() ?? '';
}

function badRequest(why: string): Refusal {
  return { statusCode: 400, reasonPhrase: `Bad Request - ${why}` };
}

const SDP = 'application/sdp';
const TAKES_SDP: ReadonlySet<string> = new Set([SDP, 'application/*', '*/*']);
/** Session timers, and extensions that only concern the application. */
const SUPPORTED: ReadonlySet<string> = new Set(['timer', 'replaces', 'norefersub', 'tdialog', 'histinfo', 'eventlist']);
