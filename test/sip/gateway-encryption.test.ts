import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { MediaEncryption } from '../../machines/events.ts';
import type { EmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';
import { cryptoValuesOf, readCrypto } from '../../sip/sdes.ts';
import type { SoftphoneOptions } from '../softphone/softphone.ts';
import { dialLeg, trunkOf } from './dialing.ts';
import { startTestSipServer, TestNetwork } from './test-network.ts';

let server: EmbeddedSipServer;
let network: TestNetwork;
beforeAll(async () => {
  server = await startTestSipServer();
});
afterAll(() => server.close());

beforeEach(async () => {
  network = await TestNetwork.on(server);
});

afterEach(() => network.stop());

async function dialed(mediaEncryption: MediaEncryption, options: Partial<SoftphoneOptions>) {
  const phone = await network.phone({ audio: { kind: 'tone', frequencyHz: 700 }, ...options });
  const voice = await network.voice(440);
  const leg = dialLeg(network.gateway, {
    trunk: trunkOf(phone.sipUri, { mediaEncryption }),
    localMedia: { host: '127.0.0.1', rtpPort: voice.rtpPort },
  });
  return { phone, voice, ...leg };
}

describe('leg with media encryption', () => {
  test.each([
    ['required', 'required', 'RTP/SAVP'],
    ['required', 'optional', 'RTP/SAVP'],
    ['optional', 'optional', 'RTP/AVP'],
    ['optional', 'required', 'RTP/AVP'],
  ] as const)('%s uses SRTP with a phone that has it %s, offered as %s', async (ours, theirs, profile) => {
    const { phone, voice, log } = await dialed(ours, { encryption: theirs });
    const { message } = await phone.until('invite');
    expect(message.body.toString()).toContain(` ${profile} `);
    const { media } = await log.until('leg.answered');
    expect(media.srtp?.suite).toBe('AES_CM_128_HMAC_SHA1_80');
    voice.talkTo(media);
    const received = await phone.untilReceived(({ packets }) => packets >= 25);
    expect(received.toneLevels([440])[0]).toBeGreaterThan(-16);
    await voice.untilReceived(({ packets }) => packets >= 25);
    expect(voice.receiver.received().toneLevels([700], 400)[0]).toBeGreaterThan(-16);
    expect([phone.call.voice.droppedPackets, voice.droppedPackets]).toEqual([0, 0]);
  });

  test('optional uses plain RTP with a phone that ignores it, in one INVITE', async () => {
    const { phone, log } = await dialed('optional', { encryption: 'none' });
    const { media } = await log.until('leg.answered');
    expect(media.srtp).toBeUndefined();
    expect(phone.counts.invites).toBe(1);
  });

  test('required ends with BYE and its own cause after a plain answer', async () => {
    const strip = (sdp: string) => sdp.replace(/a=crypto:.*\r\n/g, '').replace('RTP/SAVP', 'RTP/AVP');
    const { phone, over } = await dialed('required', { encryption: 'required', alterSdp: strip });
    expect(await over()).toEqual({
      type: 'leg.refused',
      sipStatus: 488,
      hangupCause: 'INCOMPATIBLE_DESTINATION',
      detail: 'the answer has no media encryption, which the trunk requires',
      isUnencrypted: true,
    });
    expect(await phone.until('bye')).toMatchObject({ by: 'peer', reason: expect.stringContaining('cause=88') });
  });

  test('required ignores plain early media', async () => {
    const strip = (sdp: string) => sdp.replace(/a=crypto:.*\r\n/g, '');
    const options = { encryption: 'required', alterSdp: strip, earlyMedia: true, answer: 'manual' } as const;
    const { log } = await dialed('required', options);
    expect(await log.until('leg.ringing')).toMatchObject({ earlyMedia: null });
  });

  test('required ends if the phone rejects it', async () => {
    const { over } = await dialed('required', { encryption: 'none' });
    const last = await over();
    expect(last).toMatchObject({ type: 'leg.refused', sipStatus: 488, hangupCause: 'INCOMPATIBLE_DESTINATION' });
    expect(last).not.toHaveProperty('isUnencrypted');
  });

  test('keeps its keys across hold and resume, accepts new ones and rejects plain media', async () => {
    const { phone, voice, log } = await dialed('required', { encryption: 'required' });
    const first = (await log.until('leg.answered')).media;
    voice.talkTo(first);
    await phone.until('confirmed');
    expect(await phone.hold()).toBe(200);
    expect(await phone.unhold()).toBe(200);
    const resumed = await log.until('leg.media', ({ media }) => media.direction === 'sendrecv');
    expect(resumed.media.srtp).toBe(first.srtp);
    expect(await phone.call.offerAgain('sendrecv', { newKeys: true })).toBe(200);
    const renewed = await log.until('leg.media', ({ media }) => media.srtp !== first.srtp);
    voice.talkTo(renewed.media);
    expect(renewed.media.srtp?.local.export()).toEqual(first.srtp?.local.export());
    const { packets } = phone.received();
    await phone.untilReceived((received) => received.packets >= packets + 25);
    expect(phone.call.voice.droppedPackets).toBe(0);
    const clear = 'v=0\r\no=- 1 9 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 5004 RTP/AVP 0\r\n';
    expect(await phone.call.send('UPDATE', [['Content-Type', 'application/sdp']], clear)).toBe(488);
  });

  test('hides keys in the gateway dump', async () => {
    const { phone, log } = await dialed('required', { encryption: 'required' });
    const { media } = await log.until('leg.answered');
    const offered = readCrypto(cryptoValuesOf((await phone.until('invite')).message.body.toString())[0]!);
    const keys = [...offered.map(({ masterKey }) => masterKey), Buffer.from(media.srtp!.remote.export())];
    const dump = network.gateway.dump();
    for (const shown of [JSON.stringify(dump), inspect(dump, { depth: 20, showHidden: true })]) {
      expect(shown).toContain('AES_CM_128_HMAC_SHA1_80');
      for (const key of keys) expect(shown).not.toContain(key.toString('base64').slice(0, 12));
    }
  });

  test('sends its INVITE in one packet', async () => {
    const { phone } = await dialed('required', { encryption: 'required' });
    const { message } = await phone.until('invite');
    const bytes = message.headers.reduce((sum, { name, value }) => sum + name.length + value.length + 4, 0);
    expect(bytes + message.body.length + message.uri.length + 20).toBeLessThan(1300);
  });
});
