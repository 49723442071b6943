import { describe, expect, test } from 'vitest';
import { buildAnswer, buildOffer, type LocalSession, type Reader, readAnswer, readOffer } from '../../sip/sdp.ts';
import { SipError } from '../../sip/sip-error.ts';
import * as fc from '../properties.ts';
import { codeOf } from './thrown-code.ts';

const LOCAL: LocalSession = {
  host: '192.0.2.1',
  rtpPort: 40_000,
  codecs: ['PCMU', 'PCMA'],
  sessionId: 7,
  sessionVersion: 1,
};

function sdp(...lines: string[]): string {
  return ['v=0', 'o=- 1 1 IN IP4 198.51.100.9', 's=-', 't=0 0', ...lines, ''].join('\r\n');
}

const CONNECTION = 'c=IN IP4 198.51.100.9';

function readRemoteMedia(text: string, reader: Reader) {
  return readAnswer(text, reader).media;
}

describe('SDP offer', () => {
  test('contains G.711 in preferred order, telephone-event, 20 ms packets and the RTCP port', () => {
    const lines = buildOffer({ ...LOCAL, codecs: ['PCMA', 'PCMU'] }).split('\r\n');
    expect(lines[0]).toBe('v=0');
    expect(lines).toContain('o=tandem 7 1 IN IP4 192.0.2.1');
    expect(lines).toContain('c=IN IP4 192.0.2.1');
    expect(lines).toContain('m=audio 40000 RTP/AVP 8 0 101');
    expect(lines).toContain('a=rtpmap:8 PCMA/8000');
    expect(lines).toContain('a=rtpmap:0 PCMU/8000');
    expect(lines).toContain('a=rtpmap:101 telephone-event/8000');
    expect(lines).toContain('a=fmtp:101 0-15');
    expect(lines).toContain('a=ptime:20');
    expect(lines).toContain('a=rtcp:40001');
    expect(lines).toContain('a=sendrecv');
  });

  test('contains G.722 with its 8 kHz clock of RFC 3551', () => {
    const lines = buildOffer({ ...LOCAL, codecs: ['G722', 'PCMU'] }).split('\r\n');
    expect(lines).toContain('m=audio 40000 RTP/AVP 9 0 101');
    expect(lines).toContain('a=rtpmap:9 G722/8000');
  });

  test('contains Opus with clock, channels and parameters, and telephone-event with both clocks', () => {
    const lines = buildOffer({ ...LOCAL, codecs: ['OPUS', 'PCMU'] }).split('\r\n');
    expect(lines).toContain('m=audio 40000 RTP/AVP 111 0 101 102');
    expect(lines).toContain('a=rtpmap:111 opus/48000/2');
    expect(lines).toContain(
      'a=fmtp:111 maxplaybackrate=16000;sprop-maxcapturerate=16000;maxaveragebitrate=24000;useinbandfec=1',
    );
    expect(lines).toContain('a=rtpmap:101 telephone-event/8000');
    expect(lines).toContain('a=rtpmap:102 telephone-event/48000');
  });

  test('reads the DTX parameter of a peer with Opus', () => {
    const reader: Reader = { ...LOCAL, codecs: ['OPUS'] };
    const read = (parameters: string) =>
      readRemoteMedia(
        sdp(CONNECTION, 'm=audio 5004 RTP/AVP 98', 'a=rtpmap:98 opus/48000/2', `a=fmtp:98 ${parameters}`),
        reader,
      ).usesDtx;
    expect(read('useinbandfec=1; usedtx=1')).toBe(true);
    expect(read('usedtx=0;useinbandfec=1')).toBeUndefined();
    expect(read('x-usedtx=1')).toBeUndefined();
  });

  test('requests Opus DTX from supporting peers, and from all if comfort noise is offered', () => {
    const local = { ...LOCAL, codecs: ['OPUS', 'PCMU'] as const };
    const answerTo = (parameters: string) => {
      const lines = ['m=audio 5004 RTP/AVP 98', 'a=rtpmap:98 opus/48000/2', `a=fmtp:98 ${parameters}`];
      return buildAnswer(local, readOffer(sdp(CONNECTION, ...lines), local));
    };
    expect(answerTo('usedtx=1')).toMatch(/a=fmtp:98 .*;usedtx=1\r\n/);
    expect(answerTo('useinbandfec=1')).not.toContain('usedtx');
    expect(buildOffer({ ...local, hasComfortNoise: true })).toMatch(/a=fmtp:111 .*;usedtx=1\r\n/);
    expect(buildOffer(local)).not.toContain('usedtx');
  });

  test('contains comfort noise on request, given a codec with an 8 kHz clock', () => {
    const offer = buildOffer({ ...LOCAL, hasComfortNoise: true });
    expect(offer).toContain('m=audio 40000 RTP/AVP 0 8 13 101\r\n');
    const reader: Reader = { ...LOCAL, codecs: ['OPUS', 'PCMU'], hasComfortNoise: true };
    expect(readRemoteMedia(offer, reader)).toMatchObject({ codec: 'PCMU', hasComfortNoise: true });
    expect(readRemoteMedia(offer, LOCAL)).not.toHaveProperty('hasComfortNoise');
    const opus = sdp(CONNECTION, 'm=audio 5004 RTP/AVP 98 13', 'a=rtpmap:98 opus/48000/2');
    expect(readRemoteMedia(opus, reader)).not.toHaveProperty('hasComfortNoise');
    expect(buildOffer({ ...LOCAL, codecs: ['OPUS'], hasComfortNoise: true })).toContain('RTP/AVP 111 101 102\r\n');
  });

  test('survives a round trip', () => {
    expect(readRemoteMedia(buildOffer(LOCAL), LOCAL)).toEqual({
      host: '192.0.2.1',
      rtpPort: 40_000,
      rtcpPort: 40_001,
      codec: 'PCMU',
      payloadType: 0,
      telephoneEventPayloadType: 101,
      direction: 'sendrecv',
    });
  });
});

describe('SDP answer', () => {
  test('selects the first offered codec, including static payload types without rtpmap', () => {
    const media = readRemoteMedia(sdp(CONNECTION, 'm=audio 5004 RTP/AVP 18 8 0'), LOCAL);
    expect(media).toMatchObject({ codec: 'PCMA', payloadType: 8, telephoneEventPayloadType: null });
  });

  test('selects offered Opus, with the payload types of the peer and a matching telephone-event', () => {
    const reader: Reader = { ...LOCAL, codecs: ['OPUS', 'PCMU'] };
    const opus = ['a=rtpmap:98 OPUS/48000/2', 'a=rtpmap:99 telephone-event/8000'];
    const answer = sdp(CONNECTION, 'm=audio 5004 RTP/AVP 98 99 100', ...opus, 'a=rtpmap:100 telephone-event/48000');
    expect(readRemoteMedia(answer, reader)).toMatchObject({
      codec: 'OPUS',
      payloadType: 98,
      telephoneEventPayloadType: 100,
      telephoneEventClockHz: 48_000,
    });
    const bare = readRemoteMedia(sdp(CONNECTION, 'm=audio 5004 RTP/AVP 98 99', ...opus), reader);
    expect(bare).toMatchObject({ codec: 'OPUS', telephoneEventPayloadType: 99 });
    expect(bare).not.toHaveProperty('telephoneEventClockHz');
    expect(codeOf(() => readRemoteMedia(answer, LOCAL))).toBe('sdp.no_common_codec');
    const mono = sdp(CONNECTION, 'm=audio 5004 RTP/AVP 98', 'a=rtpmap:98 opus/48000');
    expect(codeOf(() => readRemoteMedia(mono, reader))).toBe('sdp.no_common_codec');
  });

  test('selects offered G.722, by name or static payload type', () => {
    const wideband: Reader = { ...LOCAL, codecs: ['G722', 'PCMU'] };
    const bare = sdp(CONNECTION, 'm=audio 5004 RTP/AVP 9 0');
    expect(readRemoteMedia(bare, wideband)).toMatchObject({ codec: 'G722', payloadType: 9 });
    expect(readRemoteMedia(bare, LOCAL)).toMatchObject({ codec: 'PCMU' });
    const named = sdp(CONNECTION, 'm=audio 5004 RTP/AVP 98', 'a=rtpmap:98 g722/8000');
    expect(readRemoteMedia(named, wideband)).toMatchObject({ codec: 'G722', payloadType: 98 });
    const otherClock = sdp(CONNECTION, 'm=audio 5004 RTP/AVP 98 0', 'a=rtpmap:98 G722/16000');
    expect(readRemoteMedia(otherClock, wideband)).toMatchObject({ codec: 'PCMU' });
  });

  test('prefers the stream address to the session address', () => {
    const media = readRemoteMedia(sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0', 'c=IN IP4 203.0.113.5'), LOCAL);
    expect(media.host).toBe('203.0.113.5');
  });

  test('reads a port with a number of ports', () => {
    const media = readRemoteMedia(sdp(CONNECTION, 'm=audio 5004/1 RTP/AVP 0 101'), LOCAL);
    expect(media).toMatchObject({ rtpPort: 5004, rtcpPort: 5005, codec: 'PCMU' });
    expect(codeOf(() => readRemoteMedia(sdp(CONNECTION, 'm=audio 5004/x RTP/AVP 0'), LOCAL))).toBe('sdp.no_audio');
  });

  test('takes the RTCP port from a=rtcp, otherwise one above RTP', () => {
    expect(readRemoteMedia(sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0', 'a=rtcp:6001'), LOCAL).rtcpPort).toBe(6001);
    expect(readRemoteMedia(sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0'), LOCAL).rtcpPort).toBe(5005);
    expect(readRemoteMedia(sdp(CONNECTION, 'm=audio 65535 RTP/AVP 0'), LOCAL).rtcpPort).toBe(65_535);
  });

  test('accepts any dynamic payload type for telephone-event', () => {
    const media = readRemoteMedia(
      sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0 97', 'a=rtpmap:97 Telephone-Event/8000'),
      LOCAL,
    );
    expect(media.telephoneEventPayloadType).toBe(97);
  });

  test('ignores telephone-event without a media line entry or with another clock', () => {
    const unlisted = sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0', 'a=rtpmap:97 telephone-event/8000');
    const wideband = sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0 97', 'a=rtpmap:97 telephone-event/16000');
    expect(readRemoteMedia(unlisted, LOCAL).telephoneEventPayloadType).toBeNull();
    expect(readRemoteMedia(wideband, LOCAL).telephoneEventPayloadType).toBeNull();
  });

  test.each([
    ['sendonly', 'sendonly'],
    ['recvonly', 'recvonly'],
    ['inactive', 'inactive'],
  ] as const)('reads a=%s of stream and session', (attribute, direction) => {
    expect(readRemoteMedia(sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0', `a=${attribute}`), LOCAL).direction).toBe(
      direction,
    );
    expect(readRemoteMedia(sdp(CONNECTION, `a=${attribute}`, 'm=audio 5004 RTP/AVP 0'), LOCAL).direction).toBe(
      direction,
    );
  });

  test('treats a zero address as hold', () => {
    const held = readRemoteMedia(sdp('c=IN IP4 0.0.0.0', 'm=audio 5004 RTP/AVP 0'), LOCAL);
    expect(held.direction).toBe('sendonly');
    const dead = readRemoteMedia(sdp('c=IN IP4 0.0.0.0', 'm=audio 5004 RTP/AVP 0', 'a=recvonly'), LOCAL);
    expect(dead.direction).toBe('inactive');
  });

  test('skips streams other than plain audio', () => {
    const media = readRemoteMedia(
      sdp(CONNECTION, 'm=video 6000 RTP/AVP 96', 'm=audio 7000 RTP/SAVP 0', 'm=audio 5004 RTP/AVP 8'),
      LOCAL,
    );
    expect(media.rtpPort).toBe(5004);
  });

  test.each([
    ['codec', 'm=audio 7000 RTP/AVP 18'],
    ['address family (RFC 4091)', 'm=audio 7000 RTP/AVP 0\r\nc=IN IP6 2001:db8::1'],
  ])('skips an audio stream with an unusable %s if another one is usable', (_what, unusable) => {
    const offer = readOffer(sdp(CONNECTION, unusable, 'm=audio 5004 RTP/AVP 8'), LOCAL);
    expect(offer.media).toMatchObject({ rtpPort: 5004, codec: 'PCMA' });
    expect(buildAnswer(LOCAL, offer).match(/^m=.*$/gm)).toEqual([
      expect.stringMatching(/^m=audio 0 RTP\/AVP /),
      'm=audio 40000 RTP/AVP 8',
    ]);
  });

  test('reports the first audio stream if none is usable', () => {
    const text = sdp(CONNECTION, 'm=audio 7000 RTP/AVP 18', 'm=audio 5004 RTP/AVP 0', 'c=IN IP4 224.2.1.1');
    expect(codeOf(() => readRemoteMedia(text, LOCAL))).toBe('sdp.no_common_codec');
  });

  test.each([
    ['no SDP at all', '', 'sdp.unreadable'],
    ['another format', '{"v":0}', 'sdp.unreadable'],
    ['megabytes', sdp(CONNECTION, `a=x:${'y'.repeat(100_000)}`), 'sdp.unreadable'],
    ['no stream', sdp(CONNECTION), 'sdp.no_audio'],
    ['a rejected stream', sdp(CONNECTION, 'm=audio 0 RTP/AVP 0'), 'sdp.no_audio'],
    ['an invalid port', sdp(CONNECTION, 'm=audio 70000 RTP/AVP 0'), 'sdp.no_audio'],
    ['only SRTP', sdp(CONNECTION, 'm=audio 5004 RTP/SAVP 0'), 'sdp.no_audio'],
    ['no payload types', sdp(CONNECTION, 'm=audio 5004 RTP/AVP'), 'sdp.no_audio'],
    ['no common codec', sdp(CONNECTION, 'm=audio 5004 RTP/AVP 18 3'), 'sdp.no_common_codec'],
    ['PCMU at 16 kHz', sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0', 'a=rtpmap:0 PCMU/16000'), 'sdp.no_common_codec'],
    ['no address', sdp('m=audio 5004 RTP/AVP 0'), 'sdp.bad_address'],
    ['a name for an address', sdp('c=IN IP4 media.example', 'm=audio 5004 RTP/AVP 0'), 'sdp.bad_address'],
    ['a group', sdp('c=IN IP4 224.2.1.1', 'm=audio 5004 RTP/AVP 0'), 'sdp.bad_address'],
    ['a group with a lifetime', sdp('c=IN IP4 224.2.1.1/127', 'm=audio 5004 RTP/AVP 0'), 'sdp.bad_address'],
    ['a broadcast', sdp('c=IN IP4 255.255.255.255', 'm=audio 5004 RTP/AVP 0'), 'sdp.bad_address'],
    ['the other family', sdp('c=IN IP6 2001:db8::1', 'm=audio 5004 RTP/AVP 0'), 'sdp.bad_address'],
  ])('rejects %s with an error code', (_what, text, code) => {
    expect(codeOf(() => readRemoteMedia(text, LOCAL))).toBe(code);
  });

  test('ignores a codec that was not offered', () => {
    const onlyPcma = { ...LOCAL, codecs: ['PCMA'] as const };
    expect(codeOf(() => readRemoteMedia(sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0'), onlyPcma))).toBe(
      'sdp.no_common_codec',
    );
  });

  test.each(['127.0.0.1', '127.8.8.8', '255.255.255.255', '240.0.0.1', '224.0.0.5', '0.1.2.3'])(
    'rejects media addresses such as %s',
    (host) => {
      expect(codeOf(() => readRemoteMedia(sdp(`c=IN IP4 ${host}`, 'm=audio 5004 RTP/AVP 0'), LOCAL))).toBe(
        'sdp.bad_address',
      );
    },
  );

  test.each(['::ffff:127.0.0.1', '::1', 'ff02::1'])('rejects IPv6 media addresses such as %s', (host) => {
    const local = { ...LOCAL, host: '2001:db8::1' };
    expect(codeOf(() => readRemoteMedia(sdp(`c=IN IP6 ${host}`, 'm=audio 5004 RTP/AVP 0'), local))).toBe(
      'sdp.bad_address',
    );
  });

  test('accepts loopback from a loopback peer', () => {
    const text = sdp('c=IN IP4 127.0.0.1', 'm=audio 5004 RTP/AVP 0');
    expect(readRemoteMedia(text, { ...LOCAL, peerHost: '127.0.0.1' }).host).toBe('127.0.0.1');
    expect(codeOf(() => readRemoteMedia(text, { ...LOCAL, peerHost: '203.0.113.5' }))).toBe('sdp.bad_address');
  });

  test.each(['10.0.0.7', '192.168.1.7', '100.64.0.7', '169.254.1.7'])(
    'replaces %s by the public address of the peer',
    (inner) => {
      const text = sdp(`c=IN IP4 ${inner}`, 'm=audio 5004 RTP/AVP 0');
      expect(readRemoteMedia(text, { ...LOCAL, peerHost: '198.51.100.7' }).host).toBe(inner);
      expect(readRemoteMedia(text, { ...LOCAL, peerHost: '8.8.8.8' }).host).toBe('8.8.8.8');
      expect(readRemoteMedia(text, { ...LOCAL, peerHost: '10.0.0.1' }).host).toBe(inner);
    },
  );

  test('accepts loopback if the platform runs there too', () => {
    const local = { ...LOCAL, host: '127.0.0.1' };
    expect(readRemoteMedia(sdp('c=IN IP4 127.0.0.2', 'm=audio 5004 RTP/AVP 0'), local).host).toBe('127.0.0.2');
  });

  test.each([
    ['many lines', sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0', ...Array.from({ length: 4000 }, () => 'a='))],
    ['many streams', sdp(CONNECTION, ...Array.from({ length: 17 }, () => 'm=audio 5004 RTP/AVP 0'))],
  ])('rejects an answer with %s', (_what, text) => {
    expect(codeOf(() => readRemoteMedia(text, LOCAL))).toBe('sdp.unreadable');
  });

  test('throws SipError only and yields valid ports and payload types for any text', () => {
    const line = fc.oneof(
      fc.constantFrom(
        CONNECTION,
        'c=IN IP4 0.0.0.0',
        'a=sendonly',
        'a=rtpmap:97 telephone-event/8000',
        'm=audio 1 RTP/AVP 0',
      ),
      fc
        .tuple(fc.constantFrom('m=audio ', 'a=rtcp:', 'a=rtpmap:', 'c=IN IP4 ', 'o='), fc.string())
        .map((parts) => parts.join('')),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
        const text = sdp(...lines);
        let media: ReturnType<typeof readRemoteMedia>;
        try {
          media = readRemoteMedia(text, LOCAL);
        } catch (error) {
          expect(error).toBeInstanceOf(SipError);
          return;
        }
        for (const port of [media.rtpPort, media.rtcpPort]) {
          expect(port).toBeGreaterThan(0);
          expect(port).toBeLessThan(65_536);
        }
        expect(media.payloadType).toBeLessThan(128);
      }),
      { numRuns: 500 },
    );
  });
});

describe('answering an SDP offer', () => {
  const offerOf = (...lines: string[]) => readOffer(sdp(CONNECTION, ...lines), LOCAL);

  test.each([
    ['sendonly', 'recvonly'],
    ['recvonly', 'sendonly'],
    ['inactive', 'inactive'],
    ['sendrecv', 'sendrecv'],
  ])('answers a=%s with a=%s', (offered, answered) => {
    const answer = buildAnswer(LOCAL, offerOf('m=audio 5004 RTP/AVP 0', `a=${offered}`));
    expect(answer).toContain(`a=${answered}\r\n`);
  });

  test('accepts comfort noise if the platform would offer it', () => {
    const local = { ...LOCAL, hasComfortNoise: true };
    const session = sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0 13 101', 'a=rtpmap:101 telephone-event/8000');
    const offer = readOffer(session, local);
    expect(offer.media.hasComfortNoise).toBe(true);
    expect(buildAnswer(local, offer)).toContain(
      'm=audio 40000 RTP/AVP 0 13 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:13 CN/8000',
    );
    expect(buildAnswer(local, readOffer(sdp(CONNECTION, 'm=audio 5004 RTP/AVP 0'), local))).toContain('RTP/AVP 0\r\n');
  });

  test('rejects comfort noise otherwise, so that the peer sends audio in pauses', () => {
    const answer = buildAnswer(LOCAL, offerOf('m=audio 5004 RTP/AVP 0 13 101', 'a=rtpmap:101 telephone-event/8000'));
    expect(answer).toContain('m=audio 40000 RTP/AVP 0 101\r\n');
  });

  test('keeps the payload types of the offer and accepts one codec', () => {
    const answer = buildAnswer(
      LOCAL,
      offerOf('m=audio 5004 RTP/AVP 96 8 100', 'a=rtpmap:96 opus/48000/2', 'a=rtpmap:100 telephone-event/8000'),
    );
    expect(answer).toContain('m=audio 40000 RTP/AVP 8 100\r\n');
    expect(answer).toContain('a=rtpmap:100 telephone-event/8000\r\n');
  });

  test.each(['RTP/AVP', 'RTP/AVPF'])('answers %s with the same profile', (profile) => {
    const answer = buildAnswer(LOCAL, offerOf(`m=audio 5004 ${profile} 0`));
    expect(answer).toContain(`m=audio 40000 ${profile} 0\r\n`);
  });

  test('rejects other streams with port 0, in order', () => {
    const answer = buildAnswer(
      LOCAL,
      offerOf('m=video 6000 RTP/AVP 96', 'm=audio 5004 RTP/AVP 0', 'm=image 9 udptl t38'),
    );
    const streams = answer.split('\r\n').filter((each) => each.startsWith('m='));
    expect(streams).toEqual(['m=video 0 RTP/AVP 96', 'm=audio 40000 RTP/AVP 0', 'm=image 0 udptl t38']);
  });

  test('keeps the type and payload types of a rejected stream with a number of ports', () => {
    const answer = buildAnswer(LOCAL, offerOf('m=audio 5004/1 RTP/AVP 0', 'm=video 6000/2 RTP/AVP 96'));
    expect(answer.match(/^m=.*$/gm)).toEqual(['m=audio 40000 RTP/AVP 0', 'm=video 0 RTP/AVP 96']);
  });
});
