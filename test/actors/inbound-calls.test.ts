import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Resolve } from '../../actors/callbacks/dns-resolve.ts';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import { type InboundCallsOptions, takeInboundCalls } from '../../actors/inbound-calls.ts';
import { createTrunkTargets } from '../../actors/trunk-targets.actor.ts';
import { type ErrorCode, TandemError } from '../../machines/errors.ts';
import type { Codec } from '../../machines/events.ts';
import type { InboundCall } from '../../sip/sip-gateway.ts';
import type { InboundRule } from '../../storage/queries/inbound-rules.ts';
import { setInboundRule } from '../../storage/queries/numbers.ts';
import { callbackSecretContext } from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestLogger, FakeSip } from './fakes.ts';
import { type Caller, seedCaller } from './seeds.ts';

const CALLER = '+919822222222';
const secrets = createSecretBox(Buffer.alloc(32, 7));

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

interface Received {
  decidedBy: { decided_by: string; fault: string | null };
}

interface Options {
  sipUri?: string;
  rule?: InboundRule | ((caller: Caller) => InboundRule);
  /** Error code of every admission. */
  refusal?: ErrorCode;
  /** Addresses of every host. */
  addressesOf?: Resolve;
  /** Account that the trunk registers. Default: it does not register. */
  account?: string | null;
  /** Codecs of a trunk whose audio the caller does not offer. */
  refusedCodecs?: readonly Codec[];
  numberVerifier?: InboundCallsOptions['numberVerifier'];
}

async function start({
  sipUri = 'sip:192.0.2.7',
  rule = { action: 'reject' },
  refusal,
  addressesOf = async (name) => (name === 'a.example' ? ['192.0.2.8', '2001:db8::8'] : []),
  account = null,
  refusedCodecs = [],
  numberVerifier = { claimOf: async () => null, listen: () => expect.unreachable() },
}: Options = {}) {
  const { sql } = database;
  const caller = await seedCaller(sql, { sipUri, username: account, register: account !== null });
  const { workspaceId, did: e164 } = caller;
  await setInboundRule(sql, { workspaceId, e164, rule: typeof rule === 'function' ? rule(caller) : rule });
  const sip = new FakeSip();
  const received: Received[] = [];
  takeInboundCalls({
    sip,
    sql,
    dialer: {
      async receive(request) {
        if (refusal !== undefined) throw new TandemError(refusal, 'refused');
        received.push(request);
      },
    },
    numberVerifier,
    trunkTargets: createTrunkTargets({
      ...{ sql, allowCidrs: parseCidrs(['192.0.2.0/24', '2001:db8::/32']) },
      resolve: addressesOf,
      services: {
        naptr: async () => [],
        srv: async (name) =>
          name === '_sip._udp.carrier.example' ? [{ priority: 0, weight: 0, port: 5070, name: 'a.example' }] : [],
      },
    }),
    secrets,
    allowCidrs: [],
    resolve: () => new Promise(() => {}),
    readAnswer: () => ({ action: 'reject' }),
    logger: createTestLogger(),
  });
  /** Resolves with the cause of the refusal, or never. */
  const bring = (host: string, called: string = caller.did, to: string = caller.did) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const call: InboundCall = {
      called,
      to,
      caller: CALLER,
      authorization: undefined,
      source: { host, port: 5060 },
      abandoned: new AbortController().signal,
      offersAudio: ({ codecs }) => !codecs.some((codec) => refusedCodecs.includes(codec)),
      ring() {},
      traceAs() {},
      refuse: resolve,
      challenge: () => resolve('challenged'),
      answer: () => {
        throw new Error('not answered here');
      },
    };
    sip.bring(call);
    return promise;
  };
  return { bring, received, did: caller.did };
}

function forwardTo(number: string): InboundRule & { action: 'forward' } {
  return {
    action: 'forward',
    endpoint: { type: 'phone', number },
    ...{ ringTimeoutS: 30, maxDurationS: 60, record: false, transcribe: false, announce: null, voiceId: null },
  };
}

describe('source of an inbound call', () => {
  it.each([
    { sipUri: 'sip:192.0.2.7', host: '192.0.2.7' },
    { sipUri: 'sip:192.0.2.7', host: '::ffff:192.0.2.7' },
    { sipUri: 'sip:[2001:db8::7]', host: '2001:db8:0:0:0:0:0:7' },
    { sipUri: 'sip:carrier.example', host: '192.0.2.8' },
    { sipUri: 'sip:carrier.example', host: '2001:db8::8' },
  ])('matches the trunk $sipUri from $host', async ({ sipUri, host }) => {
    const { bring } = await start({ sipUri });
    expect(await bring(host)).toBe('CALL_REJECTED');
  });

  it.each([
    { sipUri: 'sip:192.0.2.7', host: '192.0.2.9' },
    { sipUri: 'sip:carrier.example', host: '192.0.2.7' },
    { sipUri: 'sip:unknown.example', host: '192.0.2.7' },
  ])('does not match the trunk $sipUri from $host', async ({ sipUri, host }) => {
    const { bring } = await start({ sipUri });
    expect(await bring(host)).toBe('UNALLOCATED_NUMBER');
  });
});

describe('request URI of an inbound call', () => {
  it.each(['+', '', '00'])('names the number with the prefix "%s"', async (prefix) => {
    const { bring, did } = await start();
    expect(await bring('192.0.2.7', did.replace('+', prefix))).toBe('CALL_REJECTED');
  });

  it.each(['0', '+00', '000'])('does not name it with the prefix "%s"', async (prefix) => {
    const { bring, did } = await start();
    expect(await bring('192.0.2.7', did.replace('+', prefix))).toBe('UNALLOCATED_NUMBER');
  });

  it('may be the registered Contact, with the number in To', async () => {
    const { bring } = await start({ account: 'tandem' });
    expect(await bring('192.0.2.7', 'tandem')).toBe('CALL_REJECTED');
    expect(await bring('192.0.2.9', 'tandem')).toBe('UNALLOCATED_NUMBER');
    expect(await bring('192.0.2.7', 'other')).toBe('UNALLOCATED_NUMBER');
    expect(await bring('192.0.2.7', 'tandem', 'tandem')).toBe('UNALLOCATED_NUMBER');
  });

  it('may be the registered Contact of an account that looks like a rented number', async () => {
    const account = '911140000001';
    await seedCaller(database.sql, { sipUri: 'sip:192.0.2.7', numbers: [`+${account}`] });
    const { bring } = await start({ account });
    expect(await bring('192.0.2.7', account)).toBe('CALL_REJECTED');
    expect(await bring('192.0.2.7', account, account)).toBe('NO_USER_RESPONSE');
    expect(await bring('192.0.2.7', account, '+911149999999')).toBe('NO_USER_RESPONSE');
  });

  it('takes precedence over To', async () => {
    const { bring } = await start({ account: 'tandem' });
    expect(await bring('192.0.2.7', '+911149999999')).toBe('UNALLOCATED_NUMBER');
  });

  it('names the number if the trunk does not register', async () => {
    const { bring } = await start();
    expect(await bring('192.0.2.7', 'tandem')).toBe('UNALLOCATED_NUMBER');
  });
});

it('calls that arrive together share the DNS queries for their trunk', async () => {
  const isResolved = Promise.withResolvers<void>();
  const [queries, arrived]: [string[], string[]] = [[], []];
  const number = { workspaceId: randomUUID(), trunkId: randomUUID(), verificationId: randomUUID() };
  const account = { inboundUsername: null, inboundPasswordEncrypted: null, contactUser: null };
  const media = { codecs: ['PCMU'], mediaEncryption: 'none' as const };
  const trunk = { sipUri: 'sip:pbx.example:5060', transport: 'udp', gateways: [], ...account } as const;
  const { bring } = await start({
    async addressesOf(name) {
      queries.push(name);
      await isResolved.promise;
      return ['192.0.2.8'];
    },
    numberVerifier: {
      async claimOf(e164) {
        arrived.push(e164);
        return { ...number, e164, trunk: { ...trunk, ...media, ownerWorkspaceId: number.workspaceId } };
      },
      listen: async (call) => call.refuse('CALL_REJECTED'),
    },
  });
  const causes = Promise.all(Array.from({ length: 50 }, () => bring('192.0.2.8', '+911149999999')));
  await eventually(() => expect(arrived).toHaveLength(50));
  isResolved.resolve();
  expect(new Set(await causes)).toEqual(new Set(['CALL_REJECTED']));
  // A query that takes long delays the others for a while only.
  expect(queries.length).toBeLessThan(25);
});

it('a rule falls back while 50 requests of its workspace await an answer', async () => {
  const fallback = forwardTo('+919800000009');
  const { bring, received } = await start({
    rule: ({ workspaceId }) => ({
      ...{ action: 'ask', url: 'https://calls.example/inbound', secretLast4: '1234', fallback },
      secretSealed: secrets.seal('a secret', callbackSecretContext(workspaceId)).toString('base64'),
    }),
  });
  for (let calls = 0; calls < 51; calls += 1) void bring('192.0.2.7');
  await eventually(() => expect(received).toHaveLength(1));
  expect(received[0]!.decidedBy).toMatchObject({ decided_by: 'fallback', fault: 'too_many_questions' });
});

it('a caller without a codec of the trunk is refused at once, before the endpoint rings', async () => {
  const { bring, received } = await start({ rule: forwardTo('+919800000009'), refusedCodecs: ['PCMU'] });
  expect(await bring('192.0.2.7')).toBe('INCOMPATIBLE_DESTINATION');
  expect(received).toEqual([]);
});

it.each([
  { code: 'DAILY_SPEND_CAP_REACHED', cause: 'FACILITY_REJECTED' },
  { code: 'DESTINATION_BLOCKED', cause: 'FACILITY_REJECTED' },
  { code: 'no_free_channel', cause: 'SWITCH_CONGESTION' },
  { code: 'INTERNAL', cause: 'NORMAL_TEMPORARY_FAILURE' },
] as const)('a refused caller gets $cause after $code', async ({ code, cause }) => {
  const { bring } = await start({ rule: forwardTo('+919800000009'), refusal: code });
  expect(await bring('192.0.2.7')).toBe(cause);
});
