import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, seedCall, seedRecordedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let member: Member;
let realIds: string[];
/** Is not among the real ids, so it outlives the deletions. */
let trunkId: string;
beforeAll(async () => {
  fixture = await createHttpFixture({ rateLimits: { anonymousPerMinute: 1e6, plans: { enterprise: UNLIMITED } } });
  const { workspace } = await seedWorkspace(fixture.sql);
  member = await fixture.addMemberWith('owner', workspace.id);
  ({ id: trunkId } = await seedTrunk(fixture.sql, { workspaceId: workspace.id, numbers: ['+912240000001'] }));
  const trunk = await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  const { call, recordingId } = await seedRecordedCall(fixture, { by: member, bytes: Buffer.from('RIFF') });
  const other = await seedCall(fixture, { by: member, referenceId: 'a:b' });
  await finish(fixture, other.callId);
  realIds = [call.callId, recordingId, trunk.id, 'a:b', trunk.numbers[1]!, trunk.numbers[2]!];
});
afterAll(() => fixture[Symbol.asyncDispose]());

const UNLIMITED = { perMinute: 1e6, perDay: 1e6 };

interface Parameter {
  in: string;
  name: string;
}
interface Operation {
  method: string;
  path: string;
  parameters: Parameter[];
  fields: string[];
}

async function listOperations(): Promise<Operation[]> {
  const { body } = await fixture.call('GET', '/openapi.json', { as: null });
  return Object.entries<Record<string, OpenApiOperation>>(body.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      parameters,
      fields: Object.keys(requestBody?.content['application/json'].schema.properties ?? {}),
    })),
  );
}

interface OpenApiOperation {
  parameters?: Parameter[];
  requestBody?: { content: { 'application/json': { schema: { properties: Record<string, unknown> } } } };
}

const NASTY = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  '\u202e',
  '%',
  '%00',
  "' or 1=1; drop table calls; --",
  '"><script>alert(1)</script>',
  '$' + '{jndi:ldap://x}',
  '../../../etc/passwd',
  '__proto__',
  'constructor',
  '-1',
  '0',
  '1e999',
  '9007199254740993',
  '99999999999999999999999999',
  'NaN',
  'null',
  '2026-02-30',
  '+919810000001',
  '९८१००००००१',
  'sip:x@y\r\nVia: z',
  '😀'.repeat(500),
  'x'.repeat(2000),
];

it('whatever is sent to whichever operation, the answer is an envelope with its headers and never a 5xx', async () => {
  const operations = await listOperations();
  expect(operations.length).toBeGreaterThanOrEqual(20);
  const text = fc.oneof(
    fc.constantFrom(...NASTY),
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.constantFrom(...realIds),
  );
  const value = fc.oneof(
    text,
    fc.jsonValue(),
    fc.constantFrom(null, true, [], {}, [[]], -1, 0, 1.5, 1e300, -0, Number.MAX_SAFE_INTEGER),
  );

  const request = fc.constantFrom(...operations).chain((operation) =>
    fc.record({
      operation: fc.constant(operation),
      inPath: fc.array(text, { minLength: 2, maxLength: 2 }),
      inQuery: fc.dictionary(fc.constantFrom('x', 'page', ...operation.parameters.map(({ name }) => name)), text, {
        maxKeys: 4,
      }),
      body: fc.oneof(
        fc.dictionary(fc.constantFrom('x', '__proto__', ...operation.fields), value, { maxKeys: 8 }),
        value,
      ),
      lastEventId: fc.stringMatching(/^[ -~]{0,20}$/),
    }),
  );

  await fc.assert(
    fc.asyncProperty(request, async ({ operation, inPath, inQuery, body, lastEventId }) => {
      let index = 0;
      const path = operation.path.replace(/\{[^}]+\}/g, () => encodeLeniently(inPath[index++]!));
      const query = Object.entries(inQuery).map(
        ([name, given]) => `${encodeLeniently(name)}=${encodeLeniently(given)}`,
      );
      const answer = await fixture.call(operation.method as 'GET', `${path}?${query.join('&')}`, {
        as: member,
        headers: { 'last-event-id': lastEventId, ...(operation.method === 'GET' ? {} : JSON_BODY) },
        ...(operation.method === 'GET' ? {} : { body: JSON.stringify(body) ?? 'null' }),
      });
      expect(answer.status).toBeLessThan(500);
      for (const header of ['x-request-id', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']) {
        expect(answer.headers[header]).toBeTruthy();
      }
      if (answer.status >= 400) {
        expect(answer.body).toMatchObject({ success: false, request_id: answer.headers['x-request-id'] });
        expect([typeof answer.body.error, typeof answer.body.message, typeof answer.body.code]).toEqual(
          Array(3).fill('string'),
        );
        // The schemas should have caught what the database refuses.
        expect(answer.body.message).not.toContain('cannot be stored');
        expect(JSON.stringify(answer.body)).not.toMatch(/node_modules|at .*\.ts:|select |postgres/i);
      }
    }),
    { numRuns: 1500, endOnFailure: true },
  );
}, 120_000);

const JSON_BODY = { 'content-type': 'application/json' };

/** Percent-encodes what can be; half surrogate pairs cannot, and are sent as garbage. */
function encodeLeniently(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80';
}

it('metadata comes back from the database as it was sent, odd keys and lone surrogates included', async () => {
  const odd = JSON.parse('{"b":1,"a":{"__proto__":{"x":1},"constructor":null},"lone":"\\ud800","n":[1.5,-0.1,1e21]}');
  const call = await seedCall(fixture, { by: member, trunkId, metadata: odd, referenceId: randomUUID() });
  const { raw } = await fixture.call('GET', `/dialer/click2call/${call.callId}`, { as: member });
  expect(raw.toString()).toContain(`"metadata":${JSON.stringify(odd)}`);
});
