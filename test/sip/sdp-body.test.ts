import { expect, test } from 'vitest';
import { sdpOf } from '../../sip/sdp-body.ts';

const SDP = 'v=0\r\no=- 1 1 IN IP4 192.0.2.7\r\ns=-\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\nm=audio 5004 RTP/AVP 0\r\n';

function messageOf(contentType: string | undefined, body: string | undefined) {
  return { body: body ?? '', get: (name: string) => (name === 'Content-Type' ? contentType : undefined) };
}

function multipart(...parts: readonly string[]): string {
  return `${parts.map((part) => `--b 1\r\n${part}\r\n`).join('')}--b 1--\r\n`;
}

const ISUP =
  'Content-Type: application/ISUP; version=itu-t92+\r\nContent-Disposition: signal; handling=optional\r\n\r\n\u0001';

test.each([
  ['a body without a type', undefined, SDP],
  ['a body of its type', 'application/SDP; charset=utf-8', SDP],
  [
    'the SDP part beside ISUP',
    'multipart/mixed; boundary="b 1"',
    multipart(ISUP, `Content-Type: application/sdp\r\n\r\n${SDP}`),
  ],
  [
    'a part with more headers',
    'multipart/mixed;boundary="b 1"',
    multipart(`Content-ID: <1@a>\r\nc: application/sdp\r\n\r\n${SDP}`),
  ],
])('the SDP is %s', (_, type, body) => {
  expect(sdpOf(messageOf(type, body))?.trim()).toBe(SDP.trim());
});

test.each([
  ['an empty body', undefined, ''],
  ['another type', 'application/isup', '\u0001'],
  ['a multipart body without SDP', 'multipart/mixed; boundary="b 1"', multipart(ISUP)],
  ['a multipart body without a boundary', 'multipart/mixed', multipart(`Content-Type: application/sdp\r\n\r\n${SDP}`)],
])('the SDP is missing in %s', (_, type, body) => {
  expect(sdpOf(messageOf(type, body))).toBeUndefined();
});
