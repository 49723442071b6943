import type { SipRequest } from './sip-message.ts';

export type SipParseErrorCode =
  | 'TOO_LARGE'
  | 'NOT_SIP'
  | 'BAD_START_LINE'
  | 'BAD_VERSION'
  | 'BAD_STATUS_CODE'
  | 'BAD_HEADER'
  | 'BAD_CONTENT_LENGTH'
  | 'BAD_URI'
  | 'UNKNOWN_URI_SCHEME'
  | 'BAD_NAME_ADDR'
  | 'BAD_VIA'
  | 'BAD_CSEQ';

/**
 * The only error of the parsers in this folder. `request` has the readable parts of a malformed request with a usable
 * head, so that a server can answer 400 or 505 (RFC 3261 §8.2, RFC 4475).
 */
export class SipParseError extends Error {
  override readonly name = 'SipParseError';
  readonly code: SipParseErrorCode;
  readonly request: SipRequest | null;

  constructor(code: SipParseErrorCode, message: string, request: SipRequest | null = null) {
    super(message);
    this.code = code;
    this.request = request;
  }
}
