import type { SipMessage } from './sip-message.ts';

/** The bytes of a message, with the actual Content-Length as last header. Line ends inside values become blanks. */
export function serializeMessage(message: SipMessage): Buffer {
  let head =
    message.kind === 'request'
      ? `${message.method} ${oneLine(message.uri)} SIP/2.0\r\n`
      : `SIP/2.0 ${message.statusCode} ${oneLine(message.reasonPhrase)}\r\n`;
  for (const { key, name, value } of message.headers) {
    if (key !== 'content-length') head += `${name}: ${oneLine(value)}\r\n`;
  }
  head += `Content-Length: ${message.body.length}\r\n\r\n`;
  const headBytes = Buffer.from(head, 'utf8');
  return message.body.length === 0 ? headBytes : Buffer.concat([headBytes, message.body]);
}

/** Prevents header injection by line ends in values. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what is replaced
  return text.replace(/[\u0000\r\n]+/g, ' ');
}
