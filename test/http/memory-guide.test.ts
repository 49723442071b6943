import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_QUERY_CHARACTERS, MAX_TEXT_CHARACTERS } from '../../http/schemas/memory.ts';
import { MAX_MEMORIES, MAX_MESSAGES } from '../../http/schemas/memory-ingest.ts';
import { ERROR_CATALOGUE } from '../../machines/errors.ts';
import { MOST_MEMORY_ATTEMPTS, memoryBackoffMs } from '../../machines/memory.machine.ts';
import { topUp } from '../../storage/ledger.ts';
import { METADATA_MAX_BYTES } from '../../storage/queries/memory-text.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

const run = promisify(execFile);
const hasCurl = spawnSync('curl', ['--version']).status === 0;
let guide: string;
let fixture: HttpFixture;
let host: string;
beforeAll(async () => {
  guide = await readFile(join(import.meta.dirname, '../../docs/memory-api.md'), 'utf8');
  fixture = await createHttpFixture();
  const { workspaceId } = fixture.owner;
  const money = { amountNano: 1_000_000_000n, paymentType: 'one_time', operationKey: 'fund' } as const;
  await topUp(fixture.sql, { workspaceId, ...money });
  await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  host = `127.0.0.1:${(fixture.app.server.address() as { port: number }).port}`;
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function bash(script: string): Promise<string> {
  const env = { ...process.env, KEY: fixture.owner.key };
  const { stdout } = await run('bash', ['-c', script.replaceAll('localhost:8080', host)], { env });
  return stdout;
}

describe('guide to memory over HTTP', () => {
  it.runIf(hasCurl)('stores, finds and uses memories with the documented commands', async () => {
    const [remember, use] = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text]) => text!);
    const shown = JSON.parse(/```json\n([\s\S]*?)```/.exec(guide)![1]!);
    const stored = await bash(remember!);
    expect(stored).toMatch(/^HTTP\/1.1 202 /);
    expect(stored).toMatch(/^x-credit-charged: /m);
    const answer = JSON.parse(stored.slice(stored.indexOf('{"success"')));
    expect(Object.keys(answer.data)).toEqual(Object.keys(shown.data));
    expect(Object.keys(answer.data.results[0])).toEqual(Object.keys(shown.data.results[0]));
    const found = await bash(`${remember!.split('\n')[0]}\n${use}`);
    expect(found).toContain('"results":[{"id"');
    expect(found).toContain('<memories>');
    expect(found).toContain('Mumbai');
  });

  it('states the actual limits', () => {
    const said = guide.replaceAll(/(?<=\d),(?=\d{3})/g, '');
    for (const limit of [MAX_TEXT_CHARACTERS, MAX_MEMORIES, MAX_MESSAGES, MAX_QUERY_CHARACTERS, METADATA_MAX_BYTES]) {
      expect(said).toMatch(new RegExp(`\\b${limit}\\b`));
    }
    expect([memoryBackoffMs(1), memoryBackoffMs(99), MOST_MEMORY_ATTEMPTS]).toEqual([2_000, 600_000, 12]);
  });

  it('names only codes that exist', () => {
    const codes = [...guide.matchAll(/`([A-Z]+_[A-Z_]+)`/g)].map(([, code]) => code!);
    const settings = /^EMBEDDINGS_/;
    expect(codes.filter((code) => !settings.test(code) && !Object.hasOwn(ERROR_CATALOGUE, code))).toEqual([]);
    expect(codes.length).toBeGreaterThan(6);
  });
});
