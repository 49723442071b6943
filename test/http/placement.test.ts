import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import * as fc from '../properties.ts';
import { callOf } from './fake-dialer.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

const AGENT = '+919810000001';
const CUSTOMER = '+919810000002';
const VALID = { agent_number: AGENT, customer_number: CUSTOMER };
const BROWSER = { customer_number: CUSTOMER };
const CALLBACK = { callback_url: 'https://crm.example/hook', callback_secret: 'sixteen-or-more-!' };

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => {
  fixture.dialer.placed.length = 0;
});

const place = (body: unknown) => fixture.call('POST', '/dialer/click2call', { body });

describe('valid placement', () => {
  it('rings the browser of the placing user, or of another user', async () => {
    fixture.dialer.placed.length = 0;
    expect((await place({ ...BROWSER, agent_endpoint: { type: 'webrtc' } })).status).toBe(201);
    await place({ ...BROWSER, agent_endpoint: { type: 'webrtc', user_id: 42 } });
    expect(fixture.dialer.placed).toMatchObject([
      { agentNumber: null, agentUserId: fixture.owner.userId },
      { agentNumber: null, agentUserId: 42 },
    ]);
    fixture.dialer.placed.length = 0;
  });

  it('reaches the dialer with defaults and returns 201', async () => {
    const { status, body } = await place(VALID);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      success: true,
      data: { placed: true, replayed: false, call: { state: 'initiated' } },
    });
    expect(fixture.dialer.placed).toEqual([
      {
        workspaceId: fixture.owner.workspaceId,
        placedVia: 'api_key',
        apiKeyId: fixture.owner.keyId,
        apiKeyName: 'owner key',
        userId: fixture.owner.userId,
        agentNumber: AGENT,
        agentUserId: null,
        customerNumber: CUSTOMER,
        did: null,
        trunkId: null,
        referenceId: null,
        callbackUrl: null,
        callbackSecret: null,
        agentRingTimeoutS: 30,
        customerRingTimeoutS: 45,
        maxDurationS: 3600,
        record: false,
        recordingBeep: null,
        transcribe: false,
        onMachine: null,
        announce: null,
        whisper: null,
        voiceId: null,
        metadata: null,
      },
    ]);
  });

  it('passes every field to the dialer', async () => {
    const metadata = { order: 17, nested: { list: [1, 'two', null, { deep: true }] }, __proto__x: 'y' };
    const { status } = await place({
      agent_number: '(98100) 00-001',
      customer_number: '91.9810.000.002',
      did: '+91 11 4000 0001',
      outbound_trunk_id: 'AAAAAAAA-1111-4222-8333-444444444444',
      reference_id: 'Order_1.2:3-4',
      ...CALLBACK,
      agent_ring_timeout: 5,
      customer_ring_timeout: 60,
      max_duration: 7200,
      record: true,
      recording_beep: false,
      metadata,
      transcribe: true,
      machine_detection: { mode: 'enable', on_machine: 'hangup' },
    });
    expect(status).toBe(201);
    expect(fixture.dialer.placed[0]).toMatchObject({
      agentNumber: AGENT,
      customerNumber: CUSTOMER,
      did: '+911140000001',
      trunkId: 'aaaaaaaa-1111-4222-8333-444444444444',
      referenceId: 'Order_1.2:3-4',
      callbackUrl: CALLBACK.callback_url,
      callbackSecret: CALLBACK.callback_secret,
      agentRingTimeoutS: 5,
      customerRingTimeoutS: 60,
      maxDurationS: 7200,
      record: true,
      recordingBeep: false,
      metadata,
      transcribe: true,
      onMachine: 'hangup',
    });
  });

  it('returns 200 for a reference of a live call', async () => {
    fixture.dialer.onPlace = (request) => ({ placed: false, replayed: true, call: callOf(request, 'call-first') });
    const { status, body } = await place({ ...VALID, reference_id: 'again' });
    fixture.dialer.onPlace = (request) => ({ placed: true, replayed: false, call: callOf(request) });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ placed: false, replayed: true, call: { call_id: 'call-first' } });
  });

  it.each([
    ['a reference of 128 characters', { reference_id: 'x'.repeat(128) }],
    ['a callback secret of 16 characters', { ...CALLBACK, callback_secret: 'a'.repeat(16) }],
    ['a callback secret of 256 characters', { ...CALLBACK, callback_secret: 'é'.repeat(256) }],
    ['a plain http callback, which the dialer judges', { ...CALLBACK, callback_url: 'http://10.0.0.7:8080/hook' }],
    ['a secret without a URL', { callback_secret: CALLBACK.callback_secret }],
    ['empty metadata', { metadata: {} }],
    ['metadata of 2048 bytes', { metadata: { k: 'x'.repeat(2048 - '{"k":""}'.length) } }],
    ['metadata that is nested 1000 deep', { metadata: { k: JSON.parse('['.repeat(1000) + ']'.repeat(1000)) } }],
    ['ten digits that begin with 91', { agent_number: '9198765432' }],
  ])('accepts %s', async (_name, fields) => {
    expect((await place({ ...VALID, ...fields })).status).toBe(201);
  });
});

describe('server with NUMBER_PLAN=US,GB', () => {
  it('accepts numbers of both countries only', async () => {
    await using foreign = await createHttpFixture({ numberPlan: ['US', 'GB'] });
    const ask = (body: object) => foreign.call('POST', '/dialer/click2call', { body });
    const { status } = await ask({ agent_number: '(415) 555-0100', customer_number: '+44 20 7946 0958' });
    expect(status).toBe(201);
    expect(foreign.dialer.placed[0]).toMatchObject({ agentNumber: '+14155550100', customerNumber: '+442079460958' });
    for (const number of [AGENT, '+919810000001', '911', '+18765550100']) {
      const refused = await ask({ agent_number: '+14155550100', customer_number: number });
      expect([refused.status, refused.body.code]).toEqual([400, 'INVALID_NUMBER']);
      expect(refused.body.message).toMatch(/^customer_number must be a valid phone number of US, GB/);
    }
    const listed = await foreign.call('GET', '/dialer/click2call?customer_number=%2B442079460958');
    expect(listed.status).toBe(200);
    const unlisted = await foreign.call('GET', '/dialer/click2call?agent_number=9812345678');
    expect([unlisted.status, unlisted.body.code]).toEqual([400, 'VALIDATION_FAILED']);
  });
});

describe('invalid placement', () => {
  it.each<[string, Record<string, unknown> | unknown[] | string, string, string?]>([
    ['no agent', { customer_number: CUSTOMER }, 'INVALID_NUMBER', 'agent_number'],
    ['no customer', { agent_number: AGENT }, 'INVALID_NUMBER', 'customer_number'],
    ['an agent that is a JSON number', { ...VALID, agent_number: 9810000001 }, 'INVALID_NUMBER', 'agent_number'],
    ['an agent that is null', { ...VALID, agent_number: null }, 'INVALID_NUMBER', 'agent_number'],
    ['a landline', { ...VALID, agent_number: '+911140000001' }, 'INVALID_NUMBER', 'agent_number'],
    ['nine digits', { ...VALID, agent_number: '981000000' }, 'INVALID_NUMBER'],
    ['eleven digits', { ...VALID, agent_number: '98100000011' }, 'INVALID_NUMBER'],
    ['a leading zero', { ...VALID, agent_number: '09810000001' }, 'INVALID_NUMBER'],
    ['another country', { ...VALID, agent_number: '+14155550100' }, 'INVALID_NUMBER'],
    ['ten digits starting with 5', { ...VALID, customer_number: '5810000001' }, 'INVALID_NUMBER', 'customer_number'],
    ['Devanagari digits', { ...VALID, agent_number: '९८१००००००१' }, 'INVALID_NUMBER'],
    ['fullwidth digits', { ...VALID, agent_number: '９８１０００００01' }, 'INVALID_NUMBER'],
    ['letters', { ...VALID, agent_number: '98100O0001' }, 'INVALID_NUMBER'],
    ['a SIP injection', { ...VALID, agent_number: '9810000001@evil;x=1' }, 'INVALID_NUMBER'],
    ['a line break', { ...VALID, agent_number: '9810000001\r\n' }, 'INVALID_NUMBER'],
    ['a very long number', { ...VALID, agent_number: '9'.repeat(10_000) }, 'INVALID_NUMBER'],
    ['the same number twice', { agent_number: AGENT, customer_number: AGENT }, 'SAME_NUMBER'],
    ['the same number in two forms', { agent_number: AGENT, customer_number: '98100 00001' }, 'SAME_NUMBER'],
    ['a DID without plus', { ...VALID, did: '911140000001' }, 'INVALID_NUMBER', 'did'],
    ['a DID as an object', { ...VALID, did: {} }, 'INVALID_NUMBER', 'did'],
    ['an invalid trunk id', { ...VALID, outbound_trunk_id: 'main' }, 'VALIDATION_FAILED', 'outbound_trunk_id'],
    ['an empty reference', { ...VALID, reference_id: '' }, 'INVALID_REFERENCE'],
    ['a reference of 129 characters', { ...VALID, reference_id: 'x'.repeat(129) }, 'INVALID_REFERENCE'],
    ['a reference with a slash', { ...VALID, reference_id: 'a/b' }, 'INVALID_REFERENCE'],
    ['a reference with a line break', { ...VALID, reference_id: 'a\n' }, 'INVALID_REFERENCE'],
    ['a numeric reference', { ...VALID, reference_id: 42 }, 'INVALID_REFERENCE'],
    ['a relative callback', { ...VALID, ...CALLBACK, callback_url: '/hook' }, 'INVALID_CALLBACK_URL'],
    ['a file callback', { ...VALID, ...CALLBACK, callback_url: 'file:///etc/passwd' }, 'INVALID_CALLBACK_URL'],
    [
      'a callback with a password',
      { ...VALID, ...CALLBACK, callback_url: 'https://a:b@c.example' },
      'INVALID_CALLBACK_URL',
    ],
    [
      'a callback with a line break',
      { ...VALID, ...CALLBACK, callback_url: 'https://c.exa\nmple/' },
      'INVALID_CALLBACK_URL',
    ],
    [
      'a callback beyond 2048 characters',
      { ...VALID, ...CALLBACK, callback_url: `https://c.example/${'x'.repeat(2048)}` },
      'INVALID_CALLBACK_URL',
    ],
    ['a callback that is null', { ...VALID, ...CALLBACK, callback_url: null }, 'INVALID_CALLBACK_URL'],
    ['a callback without secret', { ...VALID, callback_url: CALLBACK.callback_url }, 'INVALID_CALLBACK_SECRET'],
    [
      'a secret of 15 characters',
      { ...VALID, ...CALLBACK, callback_secret: 'a'.repeat(15) },
      'INVALID_CALLBACK_SECRET',
    ],
    [
      'a secret of 257 characters',
      { ...VALID, ...CALLBACK, callback_secret: 'a'.repeat(257) },
      'INVALID_CALLBACK_SECRET',
    ],
    ['a secret with NUL', { ...VALID, ...CALLBACK, callback_secret: `${'a'.repeat(16)}\0` }, 'INVALID_CALLBACK_SECRET'],
    [
      'a secret that is half a surrogate pair',
      { ...VALID, ...CALLBACK, callback_secret: `${'a'.repeat(16)}\ud800` },
      'INVALID_CALLBACK_SECRET',
    ],
    ['an agent ring of 4 s', { ...VALID, agent_ring_timeout: 4 }, 'INVALID_RING_TIMEOUT', 'agent_ring_timeout'],
    ['an agent ring of 61 s', { ...VALID, agent_ring_timeout: 61 }, 'INVALID_RING_TIMEOUT'],
    ['a customer ring of 4 s', { ...VALID, customer_ring_timeout: 4 }, 'INVALID_RING_TIMEOUT', 'customer_ring_timeout'],
    ['a customer ring of 60.5 s', { ...VALID, customer_ring_timeout: 60.5 }, 'INVALID_RING_TIMEOUT'],
    ['a ring timeout as text', { ...VALID, agent_ring_timeout: '30' }, 'INVALID_RING_TIMEOUT'],
    ['a duration of 29 s', { ...VALID, max_duration: 29 }, 'INVALID_MAX_DURATION'],
    ['a duration of 7201 s', { ...VALID, max_duration: 7201 }, 'INVALID_MAX_DURATION'],
    ['a duration of null', { ...VALID, max_duration: null }, 'INVALID_MAX_DURATION'],
    ['record as text', { ...VALID, record: 'true' }, 'INVALID_RECORD'],
    ['record as 1', { ...VALID, record: 1 }, 'INVALID_RECORD'],
    ['a browser and a number', { ...VALID, agent_endpoint: { type: 'webrtc' } }, 'INVALID_ENDPOINT', 'agent_endpoint'],
    [
      'an unsupported endpoint',
      { ...BROWSER, agent_endpoint: { type: 'phone' } },
      'INVALID_ENDPOINT',
      'agent_endpoint.type',
    ],
    ['an endpoint of null', { ...BROWSER, agent_endpoint: null }, 'INVALID_ENDPOINT', 'agent_endpoint'],
    ['an invalid user id', { ...BROWSER, agent_endpoint: { type: 'webrtc', user_id: '1' } }, 'INVALID_ENDPOINT'],
    ['an endpoint with more', { ...BROWSER, agent_endpoint: { type: 'webrtc', number: '1' } }, 'INVALID_ENDPOINT'],
    ['a recording beep as text', { ...VALID, recording_beep: 'yes' }, 'INVALID_RECORD', 'recording_beep'],
    ['transcribe as text', { ...VALID, transcribe: 'true' }, 'INVALID_TRANSCRIBE'],
    ['transcribe as null', { ...VALID, transcribe: null }, 'INVALID_TRANSCRIBE'],
    ['an announcement of nothing', { ...VALID, announce: '' }, 'INVALID_ANNOUNCE', 'announce'],
    ['an announcement of 501 characters', { ...VALID, announce: 'x'.repeat(501) }, 'INVALID_ANNOUNCE'],
    ['an announcement as an object', { ...VALID, announce: { text: 'x' } }, 'INVALID_ANNOUNCE'],
    ['an announcement with a bell', { ...VALID, announce: 'x\u0007' }, 'INVALID_ANNOUNCE'],
    ['half a character as a whisper', { ...VALID, whisper: '\ud83d' }, 'INVALID_WHISPER'],
    ['a whisper of null', { ...VALID, whisper: null }, 'INVALID_WHISPER', 'whisper'],
    ['a voice without a name', { ...VALID, announce: 'x', voice_id: '' }, 'VALIDATION_FAILED', 'voice_id'],
    ['metadata as a list', { ...VALID, metadata: [1] }, 'INVALID_METADATA'],
    ['metadata as text', { ...VALID, metadata: '{}' }, 'INVALID_METADATA'],
    ['metadata as null', { ...VALID, metadata: null }, 'INVALID_METADATA'],
    ['metadata of 2049 bytes', { ...VALID, metadata: { k: 'x'.repeat(2049 - '{"k":""}'.length) } }, 'INVALID_METADATA'],
    ['metadata of 2049 bytes in fewer characters', { ...VALID, metadata: { k: 'é'.repeat(1021) } }, 'INVALID_METADATA'],
    ['NUL in a metadata value', { ...VALID, metadata: { k: 'a\0b' } }, 'INVALID_METADATA'],
    ['NUL in a metadata key', { ...VALID, metadata: { 'a\0b': 1 } }, 'INVALID_METADATA'],
    ['NUL deep in metadata', { ...VALID, metadata: { k: [{ l: ['\0'] }] } }, 'INVALID_METADATA'],
    ['an unknown field', { ...VALID, customer: CUSTOMER }, 'VALIDATION_FAILED', 'customer'],
    ['a list as body', [VALID], 'VALIDATION_FAILED'],
    ['null as body', 'null', 'VALIDATION_FAILED'],
  ])('fails before it reaches the dialer: %s', async (_name, sent, code, path) => {
    const { status, body } = await fixture.call('POST', '/dialer/click2call', {
      body: typeof sent === 'string' ? sent : JSON.stringify(sent),
      headers: { 'content-type': 'application/json' },
    });
    expect({ status, code: body.code }).toEqual({ status: 400, code });
    expect(body).toMatchObject({ success: false, error: 'bad_request' });
    if (path !== undefined) expect(body.details[0].path).toBe(path);
    expect(fixture.dialer.placed).toEqual([]);
  });

  it('fails with a number as metadata, however it is written', async () => {
    for (const number of ['5', '5.0', '1e2', '12345678901234567890']) {
      const text = `{"agent_number":"${AGENT}","customer_number":"${CUSTOMER}","metadata":${number}}`;
      const headers = { 'content-type': 'application/json' };
      const { status, body } = await fixture.call('POST', '/dialer/click2call', { body: text, headers });
      expect([status, body.code]).toEqual([400, 'INVALID_METADATA']);
    }
  });

  it('fails with a metadata number that JSON cannot represent', async () => {
    const text = `{"agent_number":"${AGENT}","customer_number":"${CUSTOMER}","metadata":{"n":1e999}}`;
    const { body } = await fixture.call('POST', '/dialer/click2call', {
      body: text,
      headers: { 'content-type': 'application/json' },
    });
    expect(body.code).toBe('INVALID_METADATA');
  });

  it('fails without a body', async () => {
    expect((await place(undefined)).body.code).toBe('VALIDATION_FAILED');
  });
});

describe('order of placement checks', () => {
  const wrongInOrder: [string, unknown, string][] = [
    ['agent_number', 'x', 'INVALID_NUMBER'],
    ['customer_number', 'x', 'INVALID_NUMBER'],
    ['did', 'x', 'INVALID_NUMBER'],
    ['outbound_trunk_id', 'x', 'VALIDATION_FAILED'],
    ['reference_id', '', 'INVALID_REFERENCE'],
    ['callback_url', 'x', 'INVALID_CALLBACK_URL'],
    ['callback_secret', 'x', 'INVALID_CALLBACK_SECRET'],
    ['agent_ring_timeout', 0, 'INVALID_RING_TIMEOUT'],
    ['customer_ring_timeout', 0, 'INVALID_RING_TIMEOUT'],
    ['max_duration', 0, 'INVALID_MAX_DURATION'],
    ['record', 0, 'INVALID_RECORD'],
    ['recording_beep', 0, 'INVALID_RECORD'],
    ['metadata', 0, 'INVALID_METADATA'],
    ['transcribe', 0, 'INVALID_TRANSCRIBE'],
    ['machine_detection', 0, 'INVALID_MACHINE_DETECTION'],
    ['announce', 0, 'INVALID_ANNOUNCE'],
    ['whisper', 0, 'INVALID_WHISPER'],
    ['voice_id', 0, 'VALIDATION_FAILED'],
    ['zzz', 0, 'VALIDATION_FAILED'],
  ];

  it.each([
    ['null', null, 'machine_detection'],
    ['true', true, 'machine_detection'],
    ['a list', [], 'machine_detection'],
    ['text', 'enable', 'machine_detection'],
    ['no mode', { on_machine: 'hangup' }, 'machine_detection.mode'],
    ['another mode', { mode: 'disable', on_machine: 'hangup' }, 'machine_detection.mode'],
    ['nothing to follow', { mode: 'enable' }, 'machine_detection.on_machine'],
    ['something else to follow', { mode: 'enable', on_machine: 'transfer' }, 'machine_detection.on_machine'],
    ['an unknown field', { mode: 'enable', on_machine: 'hangup', wait: 5 }, 'machine_detection.wait'],
  ])('rejects machine detection with %s', async (_name, detection, path) => {
    const { status, body } = await place({ ...VALID, machine_detection: detection });
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'INVALID_MACHINE_DETECTION' });
    expect(body.details).toMatchObject([{ path }]);
  });

  it('passes texts for the agent unchanged, and counts characters instead of UTF-16 units', async () => {
    const announce = '📞'.repeat(500);
    const whisper = '<speak>\n\tHello</speak>';
    await place({ ...VALID, announce, whisper, voice_id: 'hi' });
    expect(fixture.dialer.placed.at(-1)).toMatchObject({ announce, whisper, voiceId: 'hi' });
  });

  it('follows the specification, whatever the order of the body', async () => {
    for (const [index, [field, , code]] of wrongInOrder.entries()) {
      const rest = wrongInOrder.slice(index).reverse();
      const sent = { ...VALID, ...Object.fromEntries(rest.map(([name, value]) => [name, value])) };
      const { body } = await place(sent);
      expect([body.code, body.details[0].path]).toEqual([code, field]);
    }
  });

  it('checks credentials before the body', async () => {
    const { status } = await fixture.call('POST', '/dialer/click2call', { as: null, body: {} });
    expect(status).toBe(401);
  });

  it('checks the role before the body', async () => {
    const viewer = await fixture.addMemberWith('viewer');
    const { status, body } = await fixture.call('POST', '/dialer/click2call', { as: viewer, body: {} });
    expect([status, body.code]).toEqual([403, 'FORBIDDEN']);
  });
});

describe('error of the dialer', () => {
  it.each([
    ['RECHARGE_REQUIRED', 402, 'payment_required'],
    ['CALLER_ID_NOT_OWNED', 403, 'forbidden'],
    ['destination_not_allowed', 403, 'forbidden'],
    ['REFERENCE_NOT_OWNED', 404, 'not_found'],
    ['DIALER_NOT_PROVISIONED', 409, 'conflict'],
    ['REFERENCE_ALREADY_USED', 409, 'conflict'],
    ['C2C_OUTCOME_UNKNOWN', 504, 'gateway_timeout'],
  ] as const)('%s returns its status without Retry-After', async (code, status, type) => {
    fixture.dialer.onPlace = () => Promise.reject(new TandemError(code, 'no'));
    const answer = await place(VALID);
    expect(answer.status).toBe(status);
    expect(answer.body).toEqual({
      success: false,
      error: type,
      message: 'no',
      code,
      request_id: answer.headers['x-request-id'],
    });
    expect(answer.headers['retry-after']).toBeUndefined();
  });

  it.each([
    'C2C_RATE_LIMITED',
    'no_free_channel',
    'CARRIER_LINE_DOWN',
    'SHUTTING_DOWN',
    'C2C_CALLBACK_UNREACHABLE',
  ] as const)('%s returns Retry-After in header and body', async (code) => {
    fixture.dialer.onPlace = () => Promise.reject(new TandemError(code, 'later', { retryAfterS: 6.2 }));
    const answer = await place(VALID);
    expect(answer.body.retry_after).toBe(7);
    expect(answer.headers['retry-after']).toBe('7');
    fixture.dialer.onPlace = () => Promise.reject(new TandemError(code, 'later'));
    expect((await place(VALID)).body.retry_after).toBeGreaterThanOrEqual(1);
  });

  it('becomes a 500 without details when unexpected', async () => {
    fixture.dialer.onPlace = () => Promise.reject(new Error('secret inner workings'));
    const { status, body } = await place(VALID);
    expect([status, body.code, body.error]).toEqual([500, 'INTERNAL', 'internal_error']);
    expect(JSON.stringify(body)).not.toContain('inner workings');
  });
});

it('any JSON as placement returns 201 or 400', async () => {
  fixture.dialer.onPlace = (request) => ({ placed: true, replayed: false, call: callOf(request) });
  const fields = ['did', 'reference_id', 'callback_url', 'callback_secret', 'record', 'metadata', 'max_duration'];
  const limitless = fc.record(
    Object.fromEntries(fields.map((field) => [field, fc.jsonValue()])) as Record<string, fc.Arbitrary<unknown>>,
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.jsonValue(),
        limitless.map((rest) => ({ ...VALID, ...rest })),
      ),
      async (value) => {
        const { status } = await fixture.call('POST', '/dialer/click2call', {
          body: JSON.stringify(value),
          headers: { 'content-type': 'application/json' },
        });
        expect([201, 400]).toContain(status);
      },
    ),
    { numRuns: 150 },
  );
});
