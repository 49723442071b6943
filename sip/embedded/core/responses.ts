import {
  appendHeader,
  createResponse,
  header,
  parseNameAddr,
  type SipRequest,
  type SipResponse,
} from '../../message/index.ts';

/** A response with the headers copied from its request (RFC 3261 §8.2.6.2). Adds `toTag` if To has no tag. */
export function responseTo(
  request: SipRequest,
  statusCode: number,
  reasonPhrase: string,
  toTag: string | null,
): SipResponse {
  const response = createResponse({ statusCode, reasonPhrase });
  response.headers.push(...request.headers.filter(({ key }) => key === 'via'));
  const from = header(request, 'from');
  const to = header(request, 'to');
  if (from !== undefined) appendHeader(response, 'From', from);
  if (to !== undefined) appendHeader(response, 'To', toTag === null ? to : withTag(to, toTag));
  for (const name of ['call-id', 'cseq']) {
    const value = header(request, name);
    if (value !== undefined) appendHeader(response, name, value);
  }
  if (statusCode === 100) {
    const timestamp = header(request, 'timestamp');
    if (timestamp !== undefined) appendHeader(response, 'Timestamp', timestamp);
  }
  return response;
}

/** The generated response to a request without a response (RFC 3261 §8.1.3.1). */
export function synthesizedResponse(request: SipRequest, why: 'timeout' | 'transport'): SipResponse {
  return why === 'timeout'
    ? responseTo(request, 408, 'Request Timeout', null)
    : responseTo(request, 503, 'Service Unavailable', null);
}

/** Keeps the rest unchanged, because its sender may compare it. */
export function withTag(to: string, tag: string): string {
  try {
    return parseNameAddr(to).params.has('tag') ? to : `${to};tag=${tag}`;
  } catch {
    // A 400 for an invalid To returns it unchanged.
    return to;
  }
}
