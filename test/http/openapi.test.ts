import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
  responses: Record<string, unknown>;
}

async function readDocument() {
  const { status, body } = await fixture.call('GET', '/openapi.json', { as: null });
  expect(status).toBe(200);
  return body as { openapi: string; paths: Record<string, Record<string, Operation>> };
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
    const names = operations.map(({ operationId }) => operationId);
    expect(new Set(names).size).toBe(names.length);
  });
});
