import { createHmac, randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { unsubscribeToken } from '../../http/unsubscribe-token.ts';
import { wavHeader } from '../../media/wav.ts';
import { insertDelivery } from '../../storage/queries/deliveries.ts';
import { createLoginLink } from '../../storage/queries/login-links.ts';
import { passwordResetToken } from '../../storage/queries/password-resets.ts';
import { createUser } from '../../storage/queries/workspaces.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { legOf } from './fake-dialer.ts';
import { type Answer, createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { sessionOf } from './identity-fixture.ts';
import { formOf, partsOf } from './multipart-body.ts';
import {
  examplesOf,
  type NamedOperation,
  operationsOf,
  readDocument,
  type Schema,
  undeclaredHeaders,
} from './openapi-document.ts';
import { finish, seedCall, seedRecordedCall } from './seed-calls.ts';

const STRIPE_SECRET = 'whsec_of_stripe';
/** The workspace of the payment in the example. */
const EXAMPLE_WORKSPACE = '00000000-0000-4000-8000-000000000000';

let fixture: HttpFixture;
let owner: Member;
let session: string;
let operations: NamedOperation[];
beforeAll(async () => {
  fixture = await createHttpFixture({ stripeWebhookSecret: STRIPE_SECRET });
  const { workspace } = await seedWorkspace(fixture.sql);
  owner = await fixture.addMemberWith('owner', workspace.id);
  session = await sessionOf(fixture, owner);
  operations = operationsOf(await readDocument(fixture));
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Ids of existing resources for the examples, by operation or by the first segments of the path. */
interface Known {
  /** Default: the owner of the workspace. */
  as?: Member;
  path?: Record<string, string>;
  query?: Record<string, string>;
  body?: Record<string, unknown>;
}

const PARTY = 'leg_00000000-0000-4000-8000-000000000001';
const SUPERVISOR = 'leg_00000000-0000-4000-8000-000000000002';

const WAV = Buffer.concat([wavHeader({ channels: 2, sampleRateHz: 8000 }, 3200), Buffer.alloc(3200)]);

/** Creates a resource as the owner. @throws Error with the answer of a refused request */
async function create(url: string, body: object = {}) {
  const answer = await fixture.call('POST', url, { as: owner, body });
  if (answer.status >= 300) throw new Error(`POST ${url}: ${JSON.stringify(answer.body)}`);
  return answer.body.data;
}

async function seed(): Promise<Record<string, Known>> {
  const { sql, now } = fixture;
  const { workspaceId } = owner;
  const trunk = await seedTrunk(sql, { workspaceId });
  const { call, recordingId } = await seedRecordedCall(fixture, { by: owner, bytes: WAV });
  const leg = { number: '+919800000003', mode: null, muted: false, joinedAt: null, leftAt: null, hangupCause: null };
  const legs = [
    { ...leg, legId: PARTY, role: 'party', state: 'answered' },
    { ...leg, legId: SUPERVISOR, role: 'supervisor', mode: 'listen', state: 'answered' },
  ];
  await sql`update calls set legs = ${sql.json(legs)} where call_id = ${call.callId}`;
  const supervisor = legOf({
    role: 'supervisor',
    mode: 'listen',
    endpoint: { type: 'phone', number: '+919800000003' },
  });
  fixture.dialer.legs = [{ ...supervisor, leg_id: SUPERVISOR }];
  const spareTrunk = await seedTrunk(sql, { workspaceId, numbers: [] });
  await seedTrunk(sql, { workspaceId: fixture.owner.workspaceId, numbers: ['+912240000099'] });
  const [claimed, verifying] = ['+912249900001', '+912249900002'] as const;
  const claims = { name: 'PBX', sip_uri: 'sip:pbx.example', numbers: [claimed, verifying] };
  const claiming = await create('/dialer/trunks', claims);
  const verification = await fixture.call('POST', '/dialer/numbers/verifications', {
    as: owner,
    body: { e164: verifying, trunk_id: claiming.id },
  });
  const memory = await seedMemory();
  const minted = await fixture.call('POST', `/dialer/recordings/${recordingId}/playback-url`, { as: owner });
  const media = new URL(minted.body.data.playback_url);
  const hook = { url: 'https://hooks.example.com/tandem', events: ['stt.completed'] };
  const webhook = await create('/webhooks', hook);
  const delivery = await create(`/webhooks/${webhook.id}/test`);
  const member = await fixture.addMemberWith('member', workspaceId);
  const another = await fixture.addMemberWith('member', workspaceId);
  const token = unsubscribeToken(member.userId, Buffer.alloc(32, 5));
  const link = await createLoginLink(sql, { userId: member.userId, lifetimeMs: 60_000, now: now.current });
  await sessionOf(fixture, owner);
  const [elsewhere] = await sql<{ id: string }[]>`
    select id from sessions where user_id = ${owner.userId} order by id <> ${decodeJwt(session).jti!} desc`;
  const expiresAt = new Date(fixture.now.current.getTime() + 60_000);
  const withoutPassword = { id: another.userId, passwordHash: null };
  const resetToken = passwordResetToken(withoutPassword, { secret: Buffer.alloc(32, 5), expiresAt });
  const questions = { polite: { type: 'boolean' } };
  const evaluation = await create('/judge/evaluate', { questions, output: 'Good morning.' });
  const rubric = await create('/judge/rubrics', { name: 'Seeded', questions });
  const batch = await create('/judge/batches', { rubric_id: rubric.id, call_ids: [call.callId] });
  await fixture.judgeBatches.sweep();
  const voice = await fixture.call('POST', '/voices/professional', {
    as: owner,
    body: { name: 'Asha', language: 'en' },
  });
  const hello = { messages: [{ role: 'user', content: 'Hello.' }], stream: false };
  const chat = (await fixture.call('POST', '/v1/chat/completions', { as: owner, body: hello })).body;
  await createUser(sql, { email: 'grace@example.com', passwordHash: null, now: now.current });
  const invite = async (by: Member, email: string) => {
    const url = `/workspaces/${by.workspaceId}/invitations`;
    return (await fixture.call('POST', url, { as: by, body: { email, role: 'viewer' } })).body.data;
  };
  const revocable = await invite(owner, 'joan@example.com');
  const [user] = await sql<{ email: string }[]>`select email from users where id = ${owner.userId}`;
  const invitation = await invite(fixture.owner, user!.email);
  const callback = await insertDelivery(
    sql,
    { workspaceId, callId: call.callId, eventSequence: 1, event: 'call.initiated', eventId: randomUUID() },
    {
      ...{ id: randomUUID(), url: 'https://calls.example.com/callback', body: '{}', secretEncrypted: Buffer.of(7) },
      ...{ nextAttemptAt: now.current, createdAt: now.current },
    },
  );
  const { callId: deletable } = await seedCall(fixture, { by: owner, trunkId: trunk.id, referenceId: 'deletable' });
  await finish(fixture, deletable);
  const erasure = (await fixture.call('POST', '/privacy/erasures', { as: owner, body: { e164: '+919812340000' } }))
    .body;
  return {
    // Only the first workspace sees the machine.
    getSystemHealth: { as: fixture.owner },
    replayCallDelivery: { path: { id: call.callId, delivery_id: callback.id } },
    deleteCall: { path: { id: deletable } },
    '/privacy/erasures': { path: { id: erasure.data.id } },
    '/dialer/click2call': { path: { id: call.callId, leg_id: PARTY, supervision_id: SUPERVISOR } },
    '/dialer/recordings': { path: { id: recordingId } },
    '/dialer/trunks': { path: { id: trunk.id } },
    '/dialer/numbers': { path: { e164: trunk.numbers[0]! } },
    '/dialer/do-not-call': { path: { e164: '+919812345678' } },
    '/memory': { path: { id: memory.ready } },
    retryMemory: { path: { id: memory.failed } },
    '/memory/collections': { path: { id: memory.collectionId } },
    '/webhooks': { path: { id: webhook.id } },
    '/webhooks/deliveries': { path: { id: delivery.id } },
    '/chats': { path: { id: chat.chat_id } },
    '/judge/rubrics': { path: { id: rubric.id } },
    '/judge/evaluations': { path: { id: evaluation.id } },
    '/judge/batches': { path: { id: batch.id } },
    startJudgeBatch: { body: { rubric_id: rubric.id } },
    '/voices': { path: { id: voice.body.data.voice_id } },
    getModelForOpenai: { path: { id: 'svc-tiny' } },
    '/workspaces': { path: { id: workspaceId, user_id: String(member.userId), invitation_id: revocable.id } },
    acceptInvitation: { body: { token: invitation.token } },
    '/developer/api': { path: { id: String(another.keyId) } },
    '/unsubscribe': { query: { token } },
    showPasswordReset: { query: { token: resetToken } },
    resetPassword: { body: { token: resetToken } },
    logInWithLink: { body: { token: link.token } },
    changePassword: { body: { keep_sessions: true } },
    endSession: { path: { id: elsewhere!.id } },
    getMedia: {
      path: { key: decodeURIComponent(media.pathname.replace('/media/', '')) },
      query: Object.fromEntries(media.searchParams),
    },
    verifyNumber: { body: { e164: claimed, trunk_id: claiming.id } },
    getNumberVerification: { path: { id: verification.body.data.id } },
    rentNumber: { body: { e164: trunk.numbers[2] } },
    setCallerId: { body: { caller_id: trunk.numbers[0] } },
    deleteTrunk: { path: { id: spareTrunk.id } },
  };
}

function isJson({ headers }: Pick<Answer, 'headers'>): boolean {
  return String(headers['content-type']).startsWith('application/json');
}

it('the example of every operation succeeds with the documented body and headers', async () => {
  const known = await seed();
  const failures: unknown[] = [];
  const unseen: Record<string, string[]> = {};
  for (const operation of operations.toSorted((a, b) => lateness(a) - lateness(b))) {
    const { operationId, responses, parameters = [] } = operation;
    const isIdempotent = parameters.some(({ name }) => name === 'idempotency-key');
    const headers: Record<string, string> = isIdempotent ? { 'idempotency-key': operationId } : {};
    const request = { ...knownFor(operation, known), headers };
    const answer = await send(operation, request);
    const answers = [answer, ...(isIdempotent ? [await send(operation, request)] : [])];
    for (const { status, headers, body } of answers) {
      const undeclared = undeclaredHeaders(responses[String(status)]!, headers);
      if (undeclared.length > 0) failures.push({ operationId, status, body, undeclared });
    }
    for (const name of Object.keys(responses[String(answer.status)]?.headers ?? {})) {
      if (answers.every(({ headers }) => headers[name] === undefined))
        unseen[name] = [...(unseen[name] ?? []), operationId];
    }
    const schema = responses[String(answer.status)]?.content?.['application/json']?.schema;
    if (answer.status >= 300) failures.push({ operationId, status: answer.status, body: answer.body });
    else if (schema !== undefined && isJson(answer)) {
      const errors = [...Compile(schema).Errors(answer.body)];
      const extra = undocumented(schema, answer.body);
      if (errors.length + extra.length > 0) failures.push({ operationId, errors, extra });
    }
  }
  expect(failures).toEqual([]);
  expect(unseen).toEqual(UNSEEN);
});

/** Renting is free here, the update keeps the text, and the transcriber is a fake. */
const NOT_CHARGED = ['rentNumber', 'updateMemory', 'transcribe', 'transcribeByAlias', 'createTranscription'];

/** Declared headers that no response of this test contains. */
const UNSEEN = {
  'x-credit-balance': NOT_CHARGED,
  'x-credit-charged': NOT_CHARGED,
  'x-billing-tx': NOT_CHARGED,
  // The example asks for JSON.
  'x-accel-buffering': ['createChatCompletion'],
};

async function seedMemory() {
  const ingest = async (text: string): Promise<string> => {
    const { body } = await fixture.call('POST', '/memory/ingest', { as: owner, body: { text } });
    return body.data.results[0].id;
  };
  const failed = await ingest('A memory that fails.');
  await fixture.sql`
    update memories set status = 'failed', error_code = 'INTERNAL', error = '', next_attempt_at = null, leased_until = null
    where id = ${failed}`;
  const collection = { name: 'Seeded', type: 'team' };
  const made = await fixture.call('POST', '/memory/collections', { as: owner, body: collection });
  return { failed, ready: await ingest('A memory.'), collectionId: made.body.data.collection_id as string };
}

/** Runs deletions after the operations that need the resource. */
function lateness({ method, operationId }: NamedOperation): number {
  if (operationId === 'logout') return 3;
  if (operationId === 'endSessions') return 2;
  return method === 'DELETE' ? 1 : 0;
}

function knownFor({ operationId, path }: NamedOperation, known: Record<string, Known>): Known {
  const prefixes = Object.keys(known).filter((prefix) => path === prefix || path.startsWith(`${prefix}/`));
  const nearest = prefixes.toSorted((a, b) => b.length - a.length)[0];
  return { ...(nearest === undefined ? {} : known[nearest]), ...known[operationId] };
}

async function send(
  operation: NamedOperation,
  { as = owner, path: ids = {}, query = {}, body: fields, headers: more }: Known & { headers: Record<string, string> },
): Promise<Answer> {
  const { method, path, parameters = [], requestBody, security, operationId } = operation;
  const url = path.replaceAll(/\{(\w+)\}/g, (_braces, name: string) =>
    operationId === 'getMedia' ? ids[name]! : encodeURIComponent(ids[name] ?? ''),
  );
  // Other operations inherit the security of the document.
  const needsSession = security !== undefined && security.length > 0;
  const parameterNames = parameters.map(({ name }) => name);
  const search = new URLSearchParams({
    ...query,
    ...(needsSession && parameterNames.includes('workspace_id') ? { workspace_id: owner.workspaceId } : {}),
  });
  const form = requestBody?.content['multipart/form-data'];
  if (form !== undefined) {
    const { body, headers } = formOf(partsOf({ ...(examplesOf(form)[0]!.value as object), ...fields }));
    return await fixture.call('POST', url, { as: owner, body, headers: { ...headers, ...more } });
  }
  const media = requestBody?.content['application/json'];
  const example = media === undefined ? undefined : examplesOf(media)[0]?.value;
  const body =
    example === undefined
      ? undefined
      : JSON.stringify({ ...(example as object), ...fields }).replace(EXAMPLE_WORKSPACE, owner.workspaceId);
  return await fixture.call(method as 'GET', `${url}?${search}`, {
    as: security?.length === 0 || needsSession ? null : as,
    headers: {
      ...more,
      ...(needsSession ? { authorization: `Bearer ${session}` } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(operationId === 'receiveStripeEvent' ? { 'stripe-signature': stripeSignature(body!) } : {}),
    },
    ...(body === undefined ? {} : { body }),
  });
}

function stripeSignature(body: string): string {
  const t = Math.floor(fixture.now.current.getTime() / 1000);
  return `t=${t},v1=${createHmac('sha256', STRIPE_SECRET).update(`${t}.${body}`).digest('hex')}`;
}

function undocumented(schema: Schema, value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => undocumented(schema.items ?? {}, item, `${at}[]`));
  if (typeof value !== 'object' || value === null) return [];
  const properties = schema.properties ?? schema.anyOf?.find((branch) => branch.properties)?.properties;
  if (properties === undefined || Object.keys(properties).length === 0) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const property = properties[name];
    return property === undefined ? [`${at}.${name}`] : undocumented(property, field, `${at}.${name}`);
  });
}
