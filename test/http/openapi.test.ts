import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildCallDelivery } from '../../actors/callbacks/call-delivery.ts';
import { CallSchema, callbackSchema } from '../../http/schemas/call.ts';
import { createHttpServer } from '../../http/server.ts';
import type { HttpServerOptions } from '../../http/server-options.ts';
import { createLogger } from '../../logging.ts';
import { ERROR_CATALOGUE } from '../../machines/errors.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { partial } from '../partial.ts';
import { callOf, PLACEMENT } from './fake-dialer.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { type ApiDocument, examplesOf, type NamedOperation, operationsOf, readDocument } from './openapi-document.ts';

let fixture: HttpFixture;
let document: ApiDocument;
let operations: NamedOperation[];
beforeAll(async () => {
  fixture = await createHttpFixture();
  document = await readDocument(fixture);
  operations = operationsOf(document);
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** A server without services, which still declares its routes. */
function bareServer() {
  const secrets = createSecretBox(Buffer.alloc(32, 1));
  const logger = createLogger({ level: 'silent' });
  return createHttpServer(partial<HttpServerOptions>({ sql: fixture.sql, secrets, logger }));
}

describe('OpenAPI document', () => {
  it('matches openapi.json', async () => {
    const { body } = await fixture.call('GET', '/openapi.json', { as: null });
    await expect(`${JSON.stringify(body, null, 2)}\n`).toMatchFileSnapshot('../../openapi.json');
  });

  it('does not depend on the server instance', async () => {
    const other = bareServer();
    await other.ready();
    const served = await fixture.call('GET', '/openapi.json', { as: null });
    expect((await other.inject('/openapi.json')).body).toBe(served.raw.toString());
    await other.close();
  });

  it('contains every route of the router except the document and its pages', async () => {
    const routes: string[] = [];
    const server = bareServer();
    server.addHook('onRoute', ({ method, url }) => {
      routes.push(...[method].flat().map((one) => `${one} ${url}`));
    });
    await server.ready();
    await server.close();
    const shown = routes.filter((route) => !/^(HEAD|OPTIONS) |^GET \/($|openapi\.json|docs|console)/.test(route));
    const documented = operations.map(({ method, path }) => {
      return `${method} ${path.replace(/^\/(media|v1\/models)\/\{\w+\}$/, '/$1/*').replaceAll(/\{(\w+)\}/g, ':$1')}`;
    });
    expect(documented.toSorted()).toEqual(shown.toSorted());
    expect(shown.length).toBeGreaterThanOrEqual(50);
  });

  it('declares its title, security schemes, tag order and error codes', () => {
    expect(document.openapi).toBe('3.1.0');
    expect(document.info.title).toBe('Tandem API');
    expect(document.servers.map(({ url }) => url)).toEqual(['/']);
    const schemes = Object.entries(document.components.securitySchemes);
    expect(schemes.map(([name, { scheme }]) => [name, scheme])).toEqual([
      ['apiKey', 'bearer'],
      ['session', 'bearer'],
      ['sessionCookie', undefined],
    ]);
    const tags = document.tags.map(({ name }) => name);
    expect(tags[0]).toBe('click-to-call');
    expect(new Set(operations.flatMap((operation) => operation.tags))).toEqual(new Set(tags));
    const codes = document.components.schemas.Error?.properties?.code?.enum;
    expect(codes).toEqual(Object.keys(ERROR_CATALOGUE));
  });

  it('gives every operation an id, a summary, a tag and its security', () => {
    for (const { operationId, summary, tags, security = document.security } of operations) {
      expect(operationId).toMatch(/^[a-z][A-Za-z]+$/);
      expect(summary, operationId).toBeTruthy();
      expect(tags, operationId).toHaveLength(1);
      const schemes = security.flatMap((one) => Object.keys(one));
      expect(
        schemes.every((scheme) => scheme in document.components.securitySchemes),
        operationId,
      ).toBe(true);
    }
    const names = operations.map(({ operationId }) => operationId);
    expect(new Set(names).size).toBe(names.length);
  });

  it('requires no parameter with a default', () => {
    // Client generators would require it from their users.
    const parameters = operations.flatMap(({ parameters = [] }) => parameters);
    expect(parameters.filter(({ schema }) => schema.default !== undefined).length).toBeGreaterThan(0);
    expect(parameters.filter(({ required, schema }) => required && schema.default !== undefined)).toEqual([]);
  });

  it('lists every error of every operation by status and code', () => {
    for (const { operationId, security, responses } of operations) {
      const statuses = Object.keys(responses);
      expect(statuses, operationId).toContain('429');
      if (security?.length !== 0) expect(statuses, operationId).toContain('401');
      expect(
        statuses.filter((status) => !/^\d{3}$/.test(status)),
        operationId,
      ).toEqual([]);
      for (const [status, response] of Object.entries(responses)) {
        if (Number(status) < 400) continue;
        for (const { value } of Object.values(response.content ?? {}).flatMap(examplesOf)) {
          const { code, message } = value as { code: keyof typeof ERROR_CATALOGUE; message: string };
          expect(ERROR_CATALOGUE[code].status).toBe(Number(status));
          // The default text, for a code without an example message, contains the code.
          expect(message, `an example of ${code} in http/operation-refusals.ts`).not.toContain(code);
        }
      }
    }
  });

  it('lists CALL_NOT_FOUND in every operation that names a call', () => {
    const onCalls = operations.filter(({ path }) => path.startsWith('/dialer/click2call/{id}'));
    const silent = onCalls.filter(({ responses }) => {
      const examples = Object.values(responses['404']?.content ?? {}).flatMap(examplesOf);
      return !examples.some(({ value }) => (value as { code: string }).code === 'CALL_NOT_FOUND');
    });
    expect(silent.map(({ operationId }) => operationId)).toEqual([]);
    expect(onCalls.length).toBeGreaterThanOrEqual(30);
  });

  it('shows each transfer under the leg_id of its target, in the state after the request', () => {
    const exampleOf = (id: string, status: string) => {
      const { responses } = operations.find(({ operationId }) => operationId === id)!;
      const [example] = Object.values(responses[status]?.content ?? {}).flatMap(examplesOf);
      return (example!.value as { data: { leg?: { leg_id: string }; transfer: unknown } }).data;
    };
    const { leg, transfer } = exampleOf('transferCall', '202');
    expect(transfer).toEqual({ id: leg!.leg_id, state: 'consulting' });
    expect(exampleOf('completeNamedTransfer', '200').transfer).toEqual({ id: leg!.leg_id, state: 'completed' });
    expect(exampleOf('cancelNamedTransfer', '200').transfer).toEqual({ id: leg!.leg_id, state: 'cancelled' });
  });

  it('contains a valid example for every body, success and error', () => {
    const missing: string[] = [];
    const wrong: unknown[] = [];
    for (const { operationId, requestBody, responses } of allOperations()) {
      const bodies = Object.entries(requestBody?.content ?? {}).map(
        ([type, media]) => ['request', type, media] as const,
      );
      const answers = Object.entries(responses).flatMap(([status, { content = {} }]) =>
        Object.entries(content).map(([type, media]) => [status, type, media] as const),
      );
      for (const [part, type, media] of [...bodies, ...answers]) {
        const examples = examplesOf(media);
        // Audio needs no example.
        if (examples.length === 0 && !type.startsWith('audio/')) missing.push(`${operationId} ${part} ${type}`);
        for (const { schema, value } of examples) {
          const errors = [...Compile(schema).Errors(value)];
          if (errors.length > 0) wrong.push({ operationId, part, errors });
        }
      }
    }
    expect(missing).toEqual([]);
    expect(wrong).toEqual([]);
  });

  it('describes the callback request', () => {
    const { parameters = [], requestBody } = document.webhooks.callEnded!.post!;
    expect(parameters.map(({ name }) => name)).toEqual([
      'x-qcall-signature',
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
    ]);
    const schema = requestBody?.content['application/json']?.schema;
    const call = callOf({ ...PLACEMENT, callbackUrl: 'https://receiver.example/', metadata: { a: 1 } });
    const event = { event: 'call.completed', eventId: 'e', sequence: 3, at: fixture.now.current };
    const delivery = buildCallDelivery({ call, event, secretEncrypted: Buffer.from('sealed') });
    const body = JSON.parse(delivery!.body);
    expect(Object.keys(schema?.properties ?? {})).toEqual(Object.keys(body));
    expect([...Compile(callbackSchema(CallSchema)).Errors({ ...body, event: 'call.completed' })]).toEqual([]);
  });

  function allOperations() {
    return [...operations, ...Object.values(document.webhooks).flatMap((methods) => Object.values(methods))];
  }
});
