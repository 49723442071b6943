import { createRequest, header, parseCSeq, type SipRequest, type SipResponse } from '../../message/index.ts';

/**
 * The ACK of a rejection, which belongs to the INVITE's transaction: same branch, the rejection's To (RFC 3261
 * §17.1.1.3).
 */
export function acknowledgeFailure(invite: SipRequest, response: SipResponse): SipRequest {
  return sameHop(invite, 'ACK', header(response, 'to') ?? header(invite, 'to') ?? '');
}

/** The CANCEL of a request, with the headers that identify it (RFC 3261 §9.1). */
export function cancelOf(invite: SipRequest): SipRequest {
  return sameHop(invite, 'CANCEL', header(invite, 'to') ?? '');
}

function sameHop(invite: SipRequest, method: 'ACK' | 'CANCEL', to: string): SipRequest {
  const request = createRequest({
    method,
    uri: invite.uri,
    headers: [
      ['Via', header(invite, 'via') ?? ''],
      ['Max-Forwards', '70'],
      ['From', header(invite, 'from') ?? ''],
      ['To', to],
      ['Call-ID', header(invite, 'call-id') ?? ''],
      ['CSeq', `${parseCSeq(header(invite, 'cseq') ?? '').sequence} ${method}`],
    ],
  });
  request.headers.push(...invite.headers.filter(({ key }) => key === 'route'));
  return request;
}
