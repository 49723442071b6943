import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildCallDelivery } from '../../actors/callbacks/call-delivery.ts';
import { CallSchema, callbackSchema } from '../../http/schemas/call.ts';
import { callOf, PLACEMENT } from './fake-dialer.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

interface Operation {
  operationId?: string;
  summary?: string;
  tags?: string[];
  parameters?: { name: string; required?: boolean; schema: { default?: unknown } }[];
  requestBody?: { content: Record<string, { schema: { properties: object } }> };
  responses: Record<string, unknown>;
}

async function readDocument() {
  const { status, body } = await fixture.call('GET', '/openapi.json', { as: null });
  expect(status).toBe(200);
  return body as {
    openapi: string;
    paths: Record<string, Record<string, Operation>>;
    webhooks: Record<string, Record<string, Operation>>;
  };
}

describe('the OpenAPI document', () => {
  it('is the one that is committed', async () => {
    const text = `${JSON.stringify(await readDocument(), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot('../../openapi.json');
  });

  it('describes every operation with a name, a summary and its refusals', async () => {
    const { openapi, paths } = await readDocument();
    expect(openapi).toBe('3.1.0');
    const operations = Object.values(paths).flatMap((path) => Object.values(path));
    expect(operations.length).toBeGreaterThanOrEqual(20);
    for (const operation of operations) {
      expect(operation.operationId).toBeTruthy();
      expect(operation.summary).toBeTruthy();
      expect(operation.tags).toHaveLength(1);
      expect(Object.keys(operation.responses)).toContain('4XX');
    }
    // A generator of clients would ask its users for what the server fills in.
    const parameters = operations.flatMap(({ parameters = [] }) => parameters);
    expect(parameters.filter(({ schema }) => schema.default !== undefined).length).toBeGreaterThan(0);
    expect(parameters.filter(({ required, schema }) => required && schema.default !== undefined)).toEqual([]);
    const names = operations.map(({ operationId }) => operationId);
    expect(new Set(names).size).toBe(names.length);
  });

  it('describes the callback that a receiver gets', async () => {
    const { webhooks } = await readDocument();
    const { parameters = [], requestBody } = webhooks.callEnded!.post!;
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
});
