/**
 * Codes of SIP errors outside a leg's events. `sdp.*` and `trunk.*` codes become events of one leg; `server.*` codes
 * are thrown when the gateway is created.
 */
export type SipErrorCode =
  | 'sdp.unreadable'
  | 'sdp.no_audio'
  | 'sdp.not_encrypted'
  | 'sdp.no_common_codec'
  | 'sdp.bad_address'
  | 'trunk.bad_uri'
  | 'dns.no_service'
  | 'number.malformed'
  | 'server.unreachable'
  | 'server.secret_refused'
  | 'server.unusable_files';

export class SipError extends Error {
  override readonly name = 'SipError';
  readonly code: SipErrorCode;

  constructor(code: SipErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
