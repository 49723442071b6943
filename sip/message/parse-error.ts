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
 * The only thing the parsers of this folder throw. `request` is what could be read of a request that is broken but
 * has a usable head, so that a server can answer it with 400 or 505 instead of silence (RFC 3261 §8.2, RFC 4475).
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
