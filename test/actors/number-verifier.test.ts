import { afterAll, beforeAll, expect, it } from 'vitest';
import { createNumberVerifier } from '../../actors/number-verifier.actor.ts';
import type { LegEvent, RemoteMedia } from '../../machines/events.ts';
import { dtmfTones } from '../../media/dsp/dtmf-tones.ts';
import { framesOf } from '../../media/dsp/tones.ts';
import type { MediaPlane } from '../../media/media-plane.ts';
import { createMediaPlane } from '../../media/media-plane.workers.ts';
import type { InboundCall } from '../../sip/sip-gateway.ts';
import { NO_CALLING_LIMITS } from '../../storage/queries/calling-rules.ts';
import { createTrunk } from '../../storage/queries/trunks.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
import { freePortRange, RtpPhone } from '../media/rtp-phone.ts';
import { partial } from '../partial.ts';
import { NOW, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import {
  anyTrunkTarget,
  createTestClock,
  createTestLogger,
  everyGateway,
  FakeMediaPlane,
  FakeSip,
  remoteMedia,
} from './fakes.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { workspace } = await seedWorkspace(database.sql);
  await seedTrunk(database.sql, { workspaceId: workspace.id });
});
afterAll(() => database.drop());

/** Starts a verification. `receive` is a call over the claimed trunk. */
async function start(e164: string, mediaPlane: MediaPlane) {
  const { sql } = database;
  const { workspace } = await seedWorkspace(sql);
  const workspaceId = workspace.id;
  const { id: trunkId } = await createTrunk(sql, {
    ...{ id: crypto.randomUUID(), workspaceId, name: 'PBX', sipUri: 'sip:pbx.example', transport: 'udp' },
    ...{ username: null, passwordEncrypted: null, register: false, codecs: ['PCMU'], mediaEncryption: 'none' },
    ...{ channels: 5, allowedPrefixes: [], numbers: [e164], defaultCallerId: null, pricePerMinuteNano: 0n, now: NOW },
  });
  const sip = new FakeSip();
  sip.onDial = (leg) => {
    leg.onHangup = () => leg.emit({ type: 'leg.ended', by: 'local', hangupCause: 'NORMAL_CLEARING' });
  };
  const verifier = createNumberVerifier({
    ...{ sql, mediaPlane, sip, clock: createTestClock(), logger: createTestLogger() },
    ...{ secrets: createSecretBox(Buffer.alloc(32, 7)), trunkTargets: anyTrunkTarget },
    ...{ callingLimits: NO_CALLING_LIMITS, trunks: { isDown: () => false, dialing: (trunk) => everyGateway(trunk) } },
  });
  const asked = { workspaceId, apiKeyId: null, userId: null, e164, trunkId };
  const { id } = await verifier.start(asked, async () => {});
  const [row] = await sql<[{ code: string }]>`select code from number_verifications where id = ${id}`;

  async function receive(media: RemoteMedia) {
    const claim = (await verifier.claimOf(e164))!;
    const answered = Promise.withResolvers<{ emit: (event: LegEvent) => void; localMedia: { rtpPort: number } }>();
    const call = partial<InboundCall>({
      answer({ onEvent: emit, localMedia }) {
        setImmediate(() => emit({ type: 'leg.answered', sipStatus: 200, media }));
        answered.resolve({ emit, localMedia });
        return {
          hangup: () => emit({ type: 'leg.ended', by: 'local', hangupCause: 'NORMAL_CLEARING' }),
          ...{ hold() {}, offerAgain() {} },
        };
      },
    });
    const listening = verifier.listen(call, claim);
    return { ...(await answered.promise), listening };
  }

  async function status(): Promise<string> {
    const [stored] = await sql<[{ status: string }]>`select status from number_verifications where id = ${id}`;
    return stored.status;
  }

  return { id, code: row.code, receive, status, [Symbol.asyncDispose]: () => verifier[Symbol.asyncDispose]() };
}

/** Starts a verification without real media. `bring` is a call that presses digits and hangs up. */
async function startWithoutMedia(e164: string) {
  const mediaPlane = new FakeMediaPlane();
  const verification = await start(e164, mediaPlane);

  async function bring(digits: string, sources: readonly ('tone' | 'info' | undefined)[] = [undefined]): Promise<void> {
    const { emit, listening } = await verification.receive(remoteMedia());
    const session = await eventually(() => {
      const opened = mediaPlane.sessions.find(({ options }) => options.sessionId.startsWith(`${verification.id}-in-`));
      expect(opened?.log.at(-1)).toBe('path undefined done');
      return opened!;
    });
    for (const digit of digits) {
      for (const by of sources) {
        if (by === 'info') emit({ type: 'leg.pressed', digit, durationMs: 120 });
        else session.options.onEvent({ type: 'dtmf.pressed', leg: 'peer', digit, durationMs: 120, ...(by && { by }) });
      }
    }
    emit({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' });
    await listening;
  }

  return { ...verification, bring };
}

/** Differs from the code in every digit. */
const others = (code: string) => [...code].map((digit) => (Number(digit) + 1) % 10).join('');

it('hears a code whose first copy was garbled', async () => {
  await using verification = await startWithoutMedia('+911140000081');
  const { code } = verification;
  await verification.bring(`${others(code)}${code}`);
  expect(await verification.status()).toBe('verified');
});

it('does not hear the code among thousands of guesses in one call', async () => {
  await using verification = await startWithoutMedia('+911140000082');
  const { code } = verification;
  await verification.bring(`${others(code).repeat(1_000)}${code}`);
  expect(await verification.status()).toBe('calling');
});

it('hears a code whose digits come both as tones and as INFO', async () => {
  await using verification = await startWithoutMedia('+911140000083');
  await verification.bring(verification.code, ['tone', 'info']);
  expect(await verification.status()).toBe('verified');
});

it('hears a code that comes as tones, over a carrier without telephone events', async () => {
  const { min: rtpPortMin, max: rtpPortMax } = await freePortRange(4);
  const mediaPlane = createMediaPlane({ workers: 1, rtpHost: '127.0.0.1', rtpPortMin, rtpPortMax });
  await using _plane = { [Symbol.asyncDispose]: () => mediaPlane.close() };
  await using phone = await RtpPhone.open();
  await using verification = await start('+911140000084', mediaPlane);
  const media = phone.remote('PCMU', { telephoneEventPayloadType: null });
  const { localMedia, listening } = await verification.receive(media);
  await phone.untilReceived(1);
  for (const frame of framesOf('PCMU', dtmfTones(verification.code, 120))) phone.say(localMedia.rtpPort, 'PCMU', frame);
  await listening;
  expect(await verification.status()).toBe('verified');
});
