export { type CSeq, parseCSeq } from './cseq.ts';
export { canonicalHeaderName, headerKey } from './header-names.ts';
export { isToken, splitList } from './lexing.ts';
export { formatNameAddr, type NameAddr, parseNameAddr, tagOf } from './name-addr.ts';
export { SipParseError, type SipParseErrorCode } from './parse-error.ts';
export { MAX_HEADER_BYTES, MAX_MESSAGE_BYTES, parseMessage } from './parse-message.ts';
export { serializeMessage } from './serialize-message.ts';
export {
  appendHeader,
  createRequest,
  createResponse,
  hasHeader,
  header,
  headers,
  removeHeader,
  type SipHeader,
  type SipMessage,
  type SipRequest,
  type SipResponse,
  setHeader,
  sipHeader,
} from './sip-message.ts';
export { type StreamFrame, StreamFramer } from './stream-framer.ts';
export { formatUri, parseHostPort, parseUri, type SipUri, uriScheme } from './uri.ts';
export { formatVia, parseVia, type Via } from './via.ts';
