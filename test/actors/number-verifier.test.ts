import { afterAll, beforeAll, expect, it } from 'vitest';
import { createNumberVerifier } from '../../actors/number-verifier.actor.ts';
import type { LegEvent } from '../../machines/events.ts';
import type { InboundCall } from '../../sip/sip-gateway.ts';
import { NO_CALLING_LIMITS } from '../../storage/queries/calling-rules.ts';
import { createTrunk } from '../../storage/queries/trunks.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
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

/** Starts a verification. `bring` is a call over the claimed trunk that presses digits and hangs up. */
async function start(e164: string) {
  const { sql } = database;
  const { workspace } = await seedWorkspace(sql);
  const workspaceId = workspace.id;
  const { id: trunkId } = await createTrunk(sql, {
    ...{ id: crypto.randomUUID(), workspaceId, name: 'PBX', sipUri: 'sip:pbx.example', transport: 'udp' },
    ...{ username: null, passwordEncrypted: null, register: false, codecs: ['PCMU'], mediaEncryption: 'none' },
    ...{ channels: 5, allowedPrefixes: [], numbers: [e164], defaultCallerId: null, pricePerMinuteNano: 0n, now: NOW },
  });
  const mediaPlane = new FakeMediaPlane();
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

  async function bring(digits: string): Promise<void> {
    const claim = (await verifier.claimOf(e164))!;
    let emit: (event: LegEvent) => void = () => expect.unreachable();
    const call = partial<InboundCall>({
      answer(request) {
        emit = request.onEvent;
        setImmediate(() => emit({ type: 'leg.answered', sipStatus: 200, media: remoteMedia() }));
        return { hangup: () => {}, hold() {}, offerAgain() {} };
      },
    });
    const listening = verifier.listen(call, claim);
    const session = await eventually(() => {
      const opened = mediaPlane.sessions.find(({ options }) => options.sessionId.startsWith(`${id}-in-`));
      expect(opened?.log.at(-1)).toBe('path undefined done');
      return opened!;
    });
    for (const digit of digits) {
      session.options.onEvent({ type: 'dtmf.pressed', leg: 'peer', digit, durationMs: 120 });
    }
    emit({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' });
    await listening;
  }

  async function status(): Promise<string> {
    const [stored] = await sql<[{ status: string }]>`select status from number_verifications where id = ${id}`;
    return stored.status;
  }

  return { code: row.code, bring, status, [Symbol.asyncDispose]: () => verifier[Symbol.asyncDispose]() };
}

/** Differs from the code in every digit. */
const others = (code: string) => [...code].map((digit) => (Number(digit) + 1) % 10).join('');

it('hears a code whose first copy was garbled', async () => {
  await using verification = await start('+911140000081');
  const { code } = verification;
  await verification.bring(`${others(code)}${code}`);
  expect(await verification.status()).toBe('verified');
});

it('does not hear the code among thousands of guesses in one call', async () => {
  await using verification = await start('+911140000082');
  const { code } = verification;
  await verification.bring(`${others(code).repeat(1_000)}${code}`);
  expect(await verification.status()).toBe('calling');
});
