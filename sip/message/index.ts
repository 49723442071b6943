export { parseCSeq } from './cseq.ts';
export { splitList } from './lexing.ts';
export { formatNameAddr, parseNameAddr, tagOf } from './name-addr.ts';
export { SipParseError } from './parse-error.ts';
export { parseMessage } from './parse-message.ts';
export { serializeMessage } from './serialize-message.ts';
export { LEAST_SESSION_S, parseSessionExpires } from './session-expires.ts';
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
export { StreamFramer } from './stream-framer.ts';
export { formatUri, parseUri, type SipUri, uriHost, uriScheme, withoutBrackets } from './uri.ts';
export { userOf, userOfUri } from './user-of.ts';
export { formatVia, parseVia, type Via } from './via.ts';
