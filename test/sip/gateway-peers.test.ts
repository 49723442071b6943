import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startBaresip } from '../peers/baresip.ts';
import { peerAvailable } from '../peers/programs.ts';
import { type SippOptions, startSipp } from '../peers/sipp.ts';
import type { Voice } from '../softphone/voice.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { dialLeg, trunkOf } from './dialing.ts';
import { CUSTOMER_NUMBER, TestNetwork } from './test-network.ts';

/** Third-party programs, to find what only the project's softphone accepts. */

let network: TestNetwork;
let voice: Voice;

beforeEach(async () => {
  network = await TestNetwork.start();
  voice = await network.voice(440);
});

afterEach(() => network.stop());

function dial(sipUri: string, transport: 'udp' | 'tcp' = 'udp') {
  return dialLeg(network.gateway, {
    trunk: trunkOf(sipUri, { transport }),
    localMedia: { host: '127.0.0.1', rtpPort: voice.rtpPort },
  });
}

async function untilVoiceReceived(packets: number): Promise<void> {
  await voice.untilReceived((received) => received.packets >= packets);
}

describe.skipIf(!peerAvailable('sipp'))('sipp', () => {
  async function sipp(options: SippOptions) {
    const peer = await startSipp(options);
    network.cleanUp(() => peer.stop());
    return peer;
  }

  test.each(['udp', 'tcp'] as const)('answers over %s, exchanges audio, and receives BYE', async (transport) => {
    const peer = await sipp({ scenario: 'answers-and-plays-tone', transport });
    const dialed = dial(peer.sipUri, transport);
    const { media } = await dialed.log.until('leg.answered');
    expect(media).toMatchObject({ codec: 'PCMU', telephoneEventPayloadType: 101 });
    await untilVoiceReceived(25);
    expect(voice.receiver.received().toneLevels([600])[0]).toBeGreaterThan(-16);
    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'local' });
    await peer.succeeded();
  });

  test('plays early media before it answers', async () => {
    const peer = await sipp({ scenario: 'early-media' });
    const dialed = dial(peer.sipUri);
    const ringing = await dialed.log.until('leg.ringing');
    expect(ringing).toMatchObject({ sipStatus: 183, earlyMedia: { codec: 'PCMU' } });
    await untilVoiceReceived(10);
    await dialed.log.until('leg.answered');
    dialed.leg.hangup('NORMAL_CLEARING');
    await dialed.over();
    await peer.succeeded();
  });

  test('connects and hangs up through a record-routing carrier with a password', async () => {
    const peer = await sipp({ scenario: 'answers-and-plays-tone' });
    const auth = { username: 'tandem', password: 's3cret', realm: 'carrier', challenge: 407 } as const;
    const carrier = await network.carrier({
      auth,
      recordRoute: true,
      routes: new Map([[CUSTOMER_NUMBER, peer.address]]),
    });
    const trunk = trunkOf(carrier.sipUri, { username: 'tandem', password: 's3cret' });
    const dialed = dialLeg(network.gateway, { trunk });
    await dialed.log.until('leg.answered');
    dialed.leg.hangup('NORMAL_CLEARING');
    await dialed.over();
    await peer.succeeded();
  });
});

describe.skipIf(!peerAvailable('baresip'))('baresip', () => {
  test.each([
    ['udp', 'PCMU'],
    ['tcp', 'PCMA'],
  ] as const)('exchanges audio over %s with %s', async (transport, codec) => {
    const peer = await startBaresip({ user: CUSTOMER_NUMBER, transport, codecs: [codec] });
    network.cleanUp(() => peer.stop());
    const dialed = dial(peer.sipUri, transport);
    const { media } = await dialed.log.until('leg.answered');
    expect(media.codec).toBe(codec);
    voice.talkTo(media);
    await untilVoiceReceived(60);
    await voice.untilTone(600);
    dialed.leg.hangup('NORMAL_CLEARING');
    expect(await dialed.over()).toMatchObject({ type: 'leg.ended', by: 'local' });
    const pcm = await peer.received();
    expect(toneLevelDbov(pcm.subarray(-4000), 440)).toBeGreaterThan(-16);
  });

  test('ends with 487 when cancelled while ringing', async () => {
    const peer = await startBaresip({ user: CUSTOMER_NUMBER, answer: 'manual' });
    network.cleanUp(() => peer.stop());
    const dialed = dial(peer.sipUri);
    await dialed.log.until('leg.ringing');
    dialed.leg.hangup('NO_ANSWER');
    expect(await dialed.over()).toMatchObject({ type: 'leg.refused', sipStatus: 487 });
  });
});
