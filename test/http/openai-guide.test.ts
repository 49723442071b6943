import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPENAI_VOICE_NAMES } from '../../speech/voices/catalogue.ts';
import { topUp } from '../../storage/ledger.ts';
import { ROOT } from '../root.ts';
import { TRANSCRIPT } from './fake-transcriber.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

let fixture: HttpFixture;
let folder: string;
let guide: string;
let baseUrl: string;
beforeAll(async () => {
  fixture = await createHttpFixture();
  await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  baseUrl = `http://127.0.0.1:${(fixture.app.server.address() as AddressInfo).port}`;
  folder = await mkdtemp(join(tmpdir(), 'tandem-openai-guide-'));
  guide = await readFile(join(ROOT, 'docs/openai-clients.md'), 'utf8');
  const { workspaceId } = fixture.owner;
  const fund = { workspaceId, amountNano: 1_000_000_000n, operationKey: 'fund' };
  await topUp(fixture.sql, { ...fund, paymentType: 'one_time' });
});
afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/** Runs the program below a heading, with its files in a separate folder. */
async function run(heading: string): Promise<string> {
  const code = new RegExp(`## ${heading}\n[^]*?\`\`\`js\n([^]*?)\`\`\``).exec(guide)?.[1];
  expect(code, heading).toBeDefined();
  const here = code!.replace('http://localhost:8080', baseUrl).replaceAll(/'((?:call|speech)\.mp3)'/g, (_, name) => {
    return JSON.stringify(join(folder, name));
  });
  const options = { cwd: ROOT, env: { ...process.env, KEY: fixture.owner.key }, timeout: 60_000 };
  return (await promisify(execFile)(process.execPath, ['--input-type=module', '-e', here], options)).stdout.trim();
}

describe('guide to OpenAI clients', () => {
  it('transcribes a file', async () => {
    await writeFile(join(folder, 'call.mp3'), 'ID3');
    expect(await run('Transcribe a file')).toBe(TRANSCRIPT.text);
  });

  it('synthesises speech', async () => {
    await run('Synthesise speech');
    expect([...(await readFile(join(folder, 'speech.mp3')))]).toEqual([1, 0, 2, 0, 3, 0]);
  });

  it('creates embeddings', async () => {
    expect(await run('Create embeddings')).toMatch(/^\[ (\d+), \1 \]$/);
  });

  it('lists every voice name', () => {
    const [, names] = /select built-in voices\.([\s\S]*?)\n\n/.exec(guide)!;
    expect(OPENAI_VOICE_NAMES.filter((name) => !names!.includes(`\`${name}\``))).toEqual([]);
  });
});
