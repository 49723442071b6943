import { describe, expect, it } from 'vitest';
import type { MediaEncryption } from '../../machines/events.ts';
import { ReceivedCall } from '../../sip/received-call.ts';

const ASSERTED = '<sip:+919800000001@carrier.example>';
const SOURCE = { host: '192.0.2.7', port: 5060 };

function receivedCall(uri: string, headers: Record<string, string>, body?: string): ReceivedCall {
  const request = { uri, get: (name: string) => headers[name], ...(body !== undefined && { body }), on: () => {} };
  const answer = () => {
    throw new Error('not answered here');
  };
  return new ReceivedCall(request, { send() {} }, { source: SOURCE, answer, traceAs() {} });
}

function callerOf(headers: Record<string, string>): string {
  return receivedCall('sip:+911140000001@192.0.2.1', headers).caller;
}

describe('caller id of an incoming call', () => {
  it('comes from P-Asserted-Identity (RFC 3325)', () => {
    expect(callerOf({ From: '<sip:pbx@phone.example>;tag=1', 'P-Asserted-Identity': ASSERTED })).toBe('+919800000001');
  });

  it.each([
    ['a SIP and a tel URI', `${ASSERTED}, <tel:+919800000001>`],
    ['a display name with a comma', `"Rao, Asha" ${ASSERTED}, <tel:+919800000001>`],
    ['a SIP URI without a user', '<sip:carrier.example>, <tel:+91-98000-00001>'],
  ])('comes from P-Asserted-Identity with %s (RFC 3325 section 9.1)', (_, asserted) => {
    const From = '<sip:anonymous@anonymous.invalid>;tag=1';
    expect(callerOf({ From, 'P-Asserted-Identity': asserted })).toBe('+919800000001');
  });

  it('falls back to From', () => {
    expect(callerOf({ From: '"Asha" <sip:+919800000002@phone.example>;tag=1' })).toBe('+919800000002');
  });

  it.each(['id', 'user', 'header', 'id;critical', 'session; ID', 'none, id'])(
    'stays hidden with Privacy: %s',
    (Privacy) => {
      expect(callerOf({ From: '<sip:a@b>;tag=1', 'P-Asserted-Identity': ASSERTED, Privacy })).toBe('');
    },
  );

  it.each(['none', 'session', 'history'])('appears with Privacy: %s', (Privacy) => {
    expect(callerOf({ From: '<sip:a@b>;tag=1', 'P-Asserted-Identity': ASSERTED, Privacy })).toBe('+919800000001');
  });
});

it('keeps the number in To of a call to our Contact', () => {
  const call = receivedCall('sip:tandem@192.0.2.1:5060', { To: '"Sales" <sip:+911140000001@carrier.example>' });
  expect([call.called, call.to]).toEqual(['tandem', '+911140000001']);
});

it.each([
  ['a plain number', 'sip:+911140000001@192.0.2.1'],
  ['the routing number of a ported one', 'sip:+911140000001;npdi;rn=+911140000000@192.0.2.1;user=phone'],
  ['a context and URI parameters', 'sip:+911140000001;phone-context=in@192.0.2.1:5060;transport=tcp'],
  ['a tel URI', 'tel:+91-11-4000-0001;npdi'],
])('reads the called number from a request URI with %s', (_, uri) => {
  expect(receivedCall(uri, { From: '<sip:a@b>;tag=1' }).called).toBe('+911140000001');
});

describe('offered audio of an incoming call', () => {
  const PCMU = 'm=audio 5004 RTP/AVP 0 101';
  const KEY = 'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz';

  function offersAudio(lines: readonly string[] | null, mediaEncryption: MediaEncryption): boolean {
    const offer = lines && ['v=0', 'o=- 1 1 IN IP4 192.0.2.7', 's=-', 'c=IN IP4 192.0.2.7', 't=0 0', ...lines, ''];
    const call = receivedCall('sip:a@b', { 'Content-Type': 'application/sdp' }, offer?.join('\r\n'));
    return call.offersAudio({ codecs: ['PCMA', 'PCMU'], mediaEncryption });
  }

  it.each([
    ['a codec of the trunk', [PCMU], 'none'],
    ['no SDP', null, 'required'],
    ['keys for required encryption', ['m=audio 5004 RTP/SAVP 8', KEY], 'required'],
    ['no keys for optional encryption', [PCMU], 'optional'],
  ] as const)('fits with %s', (_, lines, encryption) => {
    expect(offersAudio(lines, encryption)).toBe(true);
  });

  it.each([
    ['only other codecs', ['m=audio 5004 RTP/AVP 18 101'], 'none'],
    ['only video', ['m=video 5004 RTP/AVP 31'], 'none'],
    ['no keys for required encryption', [PCMU], 'required'],
    ['something other than SDP', ['m='], 'none'],
  ] as const)('does not fit with %s', (_, lines, encryption) => {
    expect(offersAudio(lines, encryption)).toBe(false);
  });
});
