import type { SrfMessage } from './srf-types.ts';

/** The SDP of a message: its body, or the first such part of a multipart body (RFC 5621). Undefined without one. */
export function sdpOf(message: Pick<SrfMessage, 'body' | 'get'>): string | undefined {
  const { body } = message;
  if (!body) return undefined;
  const type = message.get('Content-Type') ?? '';
  if (type === '' || SDP.test(type) || body.startsWith('v=0')) return body;
  const [, quoted, token] = MULTIPART.exec(type) ?? [];
  const boundary = quoted ?? token;
  return boundary === undefined ? undefined : partOf(body, boundary);
}

function partOf(body: string, boundary: string): string | undefined {
  for (const part of `\n${body}`.split(`\n--${boundary}`).slice(1)) {
    const [head = '', ...rest] = part.split(/\r?\n\r?\n/);
    if (SDP_PART.test(head)) return rest.join('\r\n\r\n');
  }
  return undefined;
}

const SDP = /^\s*application\/sdp\s*(?:;|$)/i;
const SDP_PART = /^(?:Content-Type|c)[ \t]*:[ \t]*application\/sdp[ \t]*(?:;|\r|$)/im;
const MULTIPART = /^\s*multipart\/.*;\s*boundary\s*=\s*(?:"([^"]{1,70})"|([^\s;",]{1,70}))/is;
