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

test('an offer that removes the audio is accepted, and a later one of ours offers it again', () => {
  const negotiation = new LegNegotiation({ localMedia: MEDIA, trunk: trunkOf('sip:192.0.2.7') }, () => false);
  const sent: string[] = [];
  const reply = {
    send(status: number, { body = '' }: { body?: string }) {
      sent.push([status, ...(body.match(/^m=.*$/gm) ?? [])].join(' '));
    },
  };
  const take = (body: string) =>
    negotiation.takeRequest(partial<SrfReceivedRequest>({ method: 'INVITE', body, get: () => undefined }), reply, {});
  expect(take(mediaAt(0))).toBeNull();
  take(mediaAt(5004));
  expect(take(mediaAt(0))).toMatchObject({ rtpPort: 5004, direction: 'inactive' });
  expect(take(`${mediaAt(0)}m=image 6000 udptl t38\r\n`)).toBeNull();
  expect(sent).toEqual(['488', '200 m=audio 40000 RTP/AVP 0', '200 m=audio 0 RTP/AVP 0', '488']);
  expect(negotiation.offerAgain()).toContain('m=audio 40000 RTP/AVP 0 8 101');
  expect(take(mediaAt(7004))).toMatchObject({ rtpPort: 7004, direction: 'sendrecv' });
});

test('an answer that removes the audio silences an answered leg until audio is agreed again', () => {
  const negotiation = new LegNegotiation({ localMedia: MEDIA, trunk: trunkOf('sip:192.0.2.7') }, () => false);
  const request = partial<SrfReceivedRequest>({ method: 'INVITE', body: '', get: () => undefined });
  const acknowledge = (body: string) => {
    negotiation.takeRequest(request, { send() {} }, {});
    return negotiation.takeAcknowledgement(partial<SrfReceivedRequest>({ ...request, body }));
  };
  expect(acknowledge(mediaAt(0))).toBeNull();
  acknowledge(mediaAt(5004));
  expect(acknowledge(mediaAt(0))).toMatchObject({ rtpPort: 5004, direction: 'inactive' });
  expect(acknowledge(mediaAt(7004))).toMatchObject({ rtpPort: 7004, direction: 'sendrecv' });
  negotiation.offerAgain();
  expect(negotiation.takeLaterAnswer(mediaAt(0))).toMatchObject({ rtpPort: 7004, direction: 'inactive' });
  expect(negotiation.takeLaterAnswer('v=1')).toBeNull();
});

const MEDIA = { host: '192.0.2.1', rtpPort: 40_000 };
const mediaAt = (port: number) =>
  `v=0\r\no=- 1 1 IN IP4 192.0.2.7\r\ns=-\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\nm=audio ${port} RTP/AVP 0\r\n`;

/** After early media of two forks. */
function forked() {
  const negotiation = new LegNegotiation({ localMedia: MEDIA, trunk: trunkOf('sip:192.0.2.7') }, () => false);
  negotiation.offer();
  negotiation.takeEarlyAnswer(mediaAt(5004), 'a');
  negotiation.takeEarlyAnswer(mediaAt(6004), 'b');
  return negotiation;
}

test('an answer without SDP uses the early media of its own fork', () => {
  expect(forked().takeAnswer(undefined, 'a')).toMatchObject({ rtpPort: 5004 });
  expect(forked().takeAnswer(undefined, 'b')).toMatchObject({ rtpPort: 6004 });
});

test('an answer without SDP and with an unknown tag uses the last early media', () => {
  expect(forked().takeAnswer(undefined, 'c')).toMatchObject({ rtpPort: 6004 });
});

test('an answer without SDP does not return to early media that an UPDATE of its fork has moved', () => {
  const negotiation = forked();
  const update = { method: 'UPDATE', body: mediaAt(7004), get: (name: string) => UPDATE_HEADERS[name] };
  negotiation.takeRequest(partial<SrfReceivedRequest>(update), { send() {} }, {});
  expect(negotiation.takeAnswer(undefined, 'a')).toMatchObject({ rtpPort: 7004 });
});

test('an answer without SDP does not restore audio that an UPDATE of its fork has removed', () => {
  const negotiation = forked();
  const update = { method: 'UPDATE', body: mediaAt(0), get: (name: string) => UPDATE_HEADERS[name] };
  negotiation.takeRequest(partial<SrfReceivedRequest>(update), { send() {} }, {});
  expect(negotiation.takeAnswer(undefined, 'a')).toMatchObject({ direction: 'inactive' });
});

const UPDATE_HEADERS: Record<string, string> = { From: '<sip:x@192.0.2.7>;tag=a' };
