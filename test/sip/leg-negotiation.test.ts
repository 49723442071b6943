import { expect, test } from 'vitest';
import { LegNegotiation } from '../../sip/leg-negotiation.ts';
import type { SrfReceivedRequest } from '../../sip/srf-types.ts';
import { partial } from '../partial.ts';
import { trunkOf } from './dialing.ts';

const WITH_VIDEO = [
  'v=0',
  'o=- 1 1 IN IP4 192.0.2.7',
  's=-',
  'c=IN IP4 192.0.2.7',
  't=0 0',
  'm=video 6000 RTP/AVP 96',
  'm=audio 5004 RTP/AVP 0',
  '',
].join('\r\n');

test('a later offer lists all streams of the peer in their order (RFC 3264 section 8)', () => {
  const localMedia = { host: '192.0.2.1', rtpPort: 40_000 };
  const negotiation = new LegNegotiation({ localMedia, trunk: trunkOf('sip:192.0.2.7') }, () => false);
  const request = partial<SrfReceivedRequest>({ method: 'INVITE', body: WITH_VIDEO, get: () => undefined });
  expect(negotiation.takeRequest(request, { send() {} }, {})).toMatchObject({ rtpPort: 5004 });
  const streams = negotiation.offerAgain().match(/^m=.*$/gm);
  expect(streams).toEqual(['m=video 0 RTP/AVP 96', 'm=audio 40000 RTP/AVP 0 8 101']);
});
