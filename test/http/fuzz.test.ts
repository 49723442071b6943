import { randomUUID } from 'node:crypto';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { wavHeader } from '../../media/wav.ts';
import { createUser } from '../../storage/queries/workspaces.ts';
import * as fc from '../properties.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { type Answer, createHttpFixture, type HttpFixture } from './fixture.ts';
import { bodyFor, knownValues, nastyText, valueFor } from './fuzz-values.ts';
import { sessionOf } from './identity-fixture.ts';
import { formOf, partsOf } from './multipart-body.ts';
import {
  committedDocument,
  examplesOf,
  type NamedOperation,
  operationsOf,
  undeclaredHeaders,
} from './openapi-document.ts';
import { finish, seedCall, seedRecordedCall } from './seed-calls.ts';

const RUNS = fc.isDeep ? 50 : 20;
/** Fixed for the default suite, so that a first run does not fail on a new counterexample. */
const SEED = 20_260_134;
/** Each hashes a password, which takes 0.1 s. */
const SLOW = ['register', 'login'];

/** A machine busy with other tests takes ten times as long as an idle one, which needs a second. */
const OPERATION_WITHIN_MS = fc.isDeep ? 600_000 : 20_000 + 200 * RUNS;

const UNLIMITED = { perMinute: 1e9, perDay: 1e9 };

let fixture: HttpFixture;
let credentials: string[];
let workspaceId: string;
/** Ids of existing resources by path of their kind, so that requests get past "not found". */
let realIds: Record<string, string[]>;
const checks = new Map<object, ReturnType<typeof Compile>>();
const reached = new Map<string, Set<number>>();

beforeAll(async () => {
  fixture = await createHttpFixture({
    rateLimits: { anonymousPerMinute: 1e9, plans: { enterprise: UNLIMITED } },
    stripeWebhookSecret: 'whsec_of_stripe',
  });
  const { workspace } = await seedWorkspace(fixture.sql);
  workspaceId = workspace.id;
  const owner = await fixture.addMemberWith('owner', workspaceId);
  // Keeps an owner whatever happens to the first one.
  const spare = await fixture.addMemberWith('owner', workspaceId);
  const viewer = await fixture.addMemberWith('viewer', workspaceId);
  const elsewhere = await fixture.addWorkspace();
  const sessions = [await sessionOf(fixture, owner), await sessionOf(fixture, spare)];
  // Most often the owner of everything, so that few requests suffice to get past "not found".
  credentials = [...Array<string>(4).fill(owner.key), spare.key, ...sessions, viewer.key, elsewhere.key];

  await seedTrunk(fixture.sql, { workspaceId, numbers: ['+912240000003', '+919812345678'] });
  await createUser(fixture.sql, { email: 'grace@example.com', passwordHash: null, now: fixture.now.current });
  const trunk = await seedTrunk(fixture.sql, { workspaceId });
  const { call, recordingId } = await seedRecordedCall(fixture, {
    by: owner,
    bytes: wavHeader({ channels: 2, sampleRateHz: 8000 }, 0),
  });
  const other = await seedCall(fixture, { by: owner, referenceId: 'a:b' });
  await finish(fixture, other.callId);
  const body = { url: 'https://hooks.example.com/tandem', events: ['stt.completed'] };
  const webhook = await fixture.call('POST', '/webhooks', { as: owner, body });
  const delivery = await fixture.call('POST', `/webhooks/${webhook.body.data.id}/test`, { as: owner, body: {} });
  const { userId, keyId } = await fixture.addMemberWith('member', workspaceId);
  const questions = { polite: { type: 'boolean' } };
  const judged = { as: owner, body: { questions, output: 'Good morning.' } };
  const evaluation = await fixture.call('POST', '/judge/evaluate', judged);
  const newRubric = { as: owner, body: { name: 'Seeded', questions, shared: true } };
  const rubric = await fixture.call('POST', '/judge/rubrics', newRubric);
  const rubric_id = rubric.body.data.id;
  const batch = await fixture.call('POST', '/judge/batches', { as: owner, body: { rubric_id } });
  const voice = await fixture.call('POST', '/voices/professional', {
    as: owner,
    body: { name: 'Asha', language: 'en' },
  });
  const hello = { messages: [{ role: 'user', content: 'Hello.' }], stream: false };
  const chat = await fixture.call('POST', '/v1/chat/completions', { as: owner, body: hello });
  const team = { as: owner, body: { name: 'Support', type: 'team' } };
  const collection = await fixture.call('POST', '/memory/collections', team);
  const memory = await fixture.call('POST', '/memory/ingest', { as: owner, body: { text: 'A memory.' } });
  const erasure = await fixture.call('POST', '/privacy/erasures', { as: owner, body: { e164: '+919810009999' } });
  realIds = {
    '/dialer/click2call': [call.callId, 'a:b', recordingId],
    '/dialer/recordings': [recordingId],
    '/dialer/trunks': [trunk.id],
    '/dialer/numbers': trunk.numbers,
    '/chats': [chat.body.chat_id],
    '/judge/rubrics': [rubric_id],
    '/judge/evaluations': [evaluation.body.data.id],
    '/judge/batches': [batch.body.data.id],
    '/voices': [voice.body.data.voice_id, 'en-us'],
    '/memory': [memory.body.data.results[0].id],
    '/memory/collections': [collection.body.data.collection_id],
    '/privacy/erasures': [erasure.body.data.id],
    '/webhooks': [webhook.body.data.id],
    '/webhooks/deliveries': [delivery.body.data.id],
    '/workspaces': [workspaceId, String(userId), String(viewer.userId)],
    '/developer/api': [String(keyId)],
  };
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Runs deletions after the operations that need the resource. */
function lateness({ method, operationId }: NamedOperation): number {
  if (operationId === 'logout') return 2;
  return method === 'DELETE' ? 1 : 0;
}

function idsFor(path: string): string[] {
  const kinds = Object.keys(realIds).filter((kind) => path.startsWith(`${kind}/`));
  const nearest = kinds.toSorted((a, b) => b.length - a.length)[0];
  return nearest === undefined ? ['x'] : realIds[nearest]!;
}

interface Sent {
  path: Record<string, string>;
  query: [name: string, value: string][];
  headers: Record<string, string>;
  body: { raw: string } | { json: unknown } | { form: unknown } | null;
  authorization: string | null;
}

const idempotencyKey = fc.oneof(
  { weight: 8, arbitrary: fc.uuid() },
  fc.constantFrom('a', 'b'),
  fc.stringMatching(/^[ -~]{0,20}$/),
);

function requestFor({ method, path: route, parameters = [], requestBody }: NamedOperation): fc.Arbitrary<Sent> {
  const named = (place: string) => parameters.filter((parameter) => parameter.in === place);
  const id = fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...idsFor(route)) },
    { weight: 1, arbitrary: fc.constantFrom(...Object.values(realIds).flat()) },
    nastyText,
  );
  const path = fc.record(
    Object.fromEntries(
      named('path').map(({ name, schema }) => [
        name,
        fc.oneof({ weight: 6, arbitrary: id }, fc.constantFrom(...knownValues(schema), 'x').map(String)),
      ]),
    ),
  );
  const known = named('query').map(({ name, schema }) => fc.tuple(fc.constant(name), valueFor(schema).map(textOf)));
  const unknown = fc.tuple(fc.constantFrom('x', '__proto__', 'page[]', 'a.b'), nastyText);
  const query = fc.oneof(
    { weight: 9, arbitrary: known.length === 0 ? fc.constant([]) : fc.array(fc.oneof(...known), { maxLength: 3 }) },
    { weight: 1, arbitrary: fc.array(unknown, { minLength: 1, maxLength: 2 }) },
  );
  const takesWorkspace = named('query').some(({ name }) => name === 'workspace_id');
  const headers = fc.record(
    Object.fromEntries(
      [...named('header').map(({ name }) => name), 'range', 'accept', 'x-request-id'].map((name) => [
        name,
        name === 'idempotency-key' ? idempotencyKey : fc.stringMatching(/^[ -~]{0,20}$/),
      ]),
    ),
    { requiredKeys: [] },
  );
  const form = requestBody?.content['multipart/form-data'];
  const media = form ?? requestBody?.content['application/json'];
  const example = media === undefined ? undefined : examplesOf(media)[0]?.value;
  const body: fc.Arbitrary<Sent['body']> = fc.oneof(
    {
      weight: 12,
      arbitrary:
        media === undefined
          ? fc.constant(null)
          : bodyFor(media.schema ?? {}, example).map((value) => (form ? { form: value } : { json: value })),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom('{', '{"a":', '\0', '[1,]', '"\\ud800"', `"${'x'.repeat(70_000)}"`)
        .map((raw) => ({ raw })),
    },
  );
  return fc.record({
    path: path as fc.Arbitrary<Record<string, string>>,
    // Sessions require a workspace; keys sometimes name one.
    query: fc
      .tuple(query, fc.boolean())
      .map(
        ([pairs, names]) =>
          (names && takesWorkspace ? [...pairs, ['workspace_id', workspaceId]] : pairs) as [string, string][],
      ),
    headers: headers as fc.Arbitrary<Record<string, string>>,
    body: method === 'GET' ? fc.constant(null) : body,
    authorization: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...credentials).map((credential) => `Bearer ${credential}`) },
      { weight: 1, arbitrary: fc.constantFrom(null, 'Bearer', 'Bearer sk_', 'Basic eDp5', 'Bearer a.b.c') },
      { weight: 1, arbitrary: fc.stringMatching(/^[ -~]{0,60}$/).map((text) => `Bearer ${text}`) },
    ),
  });
}

/** test/http/openapi.test.ts checks that the server serves this document. */
const operations = operationsOf(await committedDocument()).toSorted((a, b) => lateness(a) - lateness(b));

describe('random requests', () => {
  it.each(operations)(
    'get only documented responses from $operationId',
    async (operation) => {
      const statuses = new Set<number>();
      reached.set(operation.operationId, statuses);
      const numRuns = SLOW.includes(operation.operationId) ? Math.ceil(RUNS / 4) : RUNS;
      await fc.assert(
        fc.asyncProperty(requestFor(operation), async (sent) => {
          const answer = await send(operation, sent);
          statuses.add(answer.status);
          expectDocumented(operation, answer);
        }),
        { numRuns, seed: SEED, endOnFailure: true },
      );
    },
    OPERATION_WITHIN_MS,
  );

  it('succeed at least once for 80 % of the operations', () => {
    expect(operations.length).toBeGreaterThanOrEqual(50);
    if (fc.isDeep) console.log(reached);
    const succeeded = [...reached].filter(([, statuses]) => [...statuses].some((status) => status < 300));
    expect(succeeded.length).toBeGreaterThanOrEqual(reached.size * 0.8);
  });
});

async function send({ method, path }: NamedOperation, { path: ids, query, headers, body, authorization }: Sent) {
  const url = path.replaceAll(/\{(\w+)\}/g, (_braces, name: string) => encodeLeniently(ids[name] ?? ''));
  const text = query.map(([name, value]) => `${encodeLeniently(name)}=${encodeLeniently(value)}`).join('&');
  const { payload, contentType } = payloadOf(body);
  return await fixture.call(method as 'GET', `${url}?${text}`, {
    as: null,
    headers: {
      ...headers,
      ...(authorization === null ? {} : { authorization }),
      ...(payload === undefined ? {} : { 'content-type': contentType }),
    },
    ...(payload === undefined ? {} : { body: payload }),
  });
}

function payloadOf(body: Sent['body']): { payload?: string | Buffer; contentType: string } {
  const contentType = 'application/json';
  if (body === null) return { contentType };
  if ('raw' in body) return { payload: body.raw, contentType };
  if ('json' in body) return { payload: JSON.stringify(body.json) ?? 'null', contentType };
  const isForm = typeof body.form === 'object' && body.form !== null;
  const form = formOf(isForm ? partsOf(body.form as object) : []);
  return { payload: form.body, contentType: form.headers['content-type'] };
}

function expectDocumented({ operationId, responses }: NamedOperation, { status, headers, body }: Answer): void {
  for (const header of ['x-request-id', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']) {
    expect(headers[header], header).toBeTruthy();
  }
  // An empty or too long id matches another route.
  if (body?.code === 'METHOD_NOT_ALLOWED' || isNowhere(body)) return;
  const response = responses[String(status)];
  expect(response, `${operationId} answered ${status} ${body?.code} ${body?.message}`).toBeDefined();
  expect(undeclaredHeaders(response!, headers), `${operationId} answered ${status} ${body?.code}`).toEqual([]);
  const media = response?.content?.['application/json'];
  if (media?.schema !== undefined && body !== null) expect(errorsOf(media.schema, body), operationId).toEqual([]);
  if (status < 400) return;
  // A replayed error has the id of the original request.
  const isReplayed = headers['idempotency-replayed'] === 'true';
  expect(body).toMatchObject({ success: false, ...(!isReplayed && { request_id: headers['x-request-id'] }) });
  expect(Object.keys(media?.examples ?? {}), `${operationId} answered ${body.message}`).toContain(body.code);
  // 503 is for documented causes, not for a healthy database.
  expect(['INTERNAL', 'STORAGE_UNAVAILABLE']).not.toContain(body.code);
  // The schemas should reject whatever the database rejects.
  expect(body.message).not.toContain('cannot be stored');
  expect(JSON.stringify(body)).not.toMatch(/node_modules|at .*\.ts:|select |postgres/i);
}

function isNowhere(body: { code?: string; message?: string } | null): boolean {
  return body?.code === 'NOT_FOUND' && body.message?.startsWith('No such path') === true;
}

function errorsOf(schema: object, value: unknown): unknown[] {
  const check = checks.get(schema) ?? Compile(schema);
  checks.set(schema, check);
  return check.Check(value) ? [] : [...check.Errors(value)];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** Percent-encodes text, and sends unpaired surrogates, which cannot be encoded, as garbage. */
function encodeLeniently(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80';
}

it('metadata returns from the database unchanged, with odd keys and lone surrogates', async () => {
  // The first workspace has arbitrary calling rules by now.
  const { workspace } = await seedWorkspace(fixture.sql);
  const owner = await fixture.addMemberWith('owner', workspace.id);
  const odd = JSON.parse('{"b":1,"a":{"__proto__":{"x":1},"constructor":null},"lone":"\\ud800","n":[1.5,-0.1,1e21]}');
  const trunk = await seedTrunk(fixture.sql, { workspaceId: workspace.id, numbers: ['+912240000009'] });
  const call = await seedCall(fixture, { by: owner, trunkId: trunk.id, metadata: odd, referenceId: randomUUID() });
  const { raw } = await fixture.call('GET', `/dialer/click2call/${call.callId}`, { as: owner });
  expect(raw.toString()).toContain(`"metadata":${JSON.stringify(odd)}`);
});
