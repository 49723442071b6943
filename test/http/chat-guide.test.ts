import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CompletionBody } from '../../http/schemas/chat.ts';
import { ERROR_CATALOGUE } from '../../machines/errors.ts';
import { topUp } from '../../storage/ledger.ts';
import { ROOT } from '../root.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';

const run = promisify(execFile);
let folder: string;
let guide: string;
let fixture: HttpFixture;
let host: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-chat-guide-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  guide = await readFile(join(ROOT, 'docs/chat.md'), 'utf8');
  fixture = await createHttpFixture();
  const { workspaceId } = fixture.owner;
  const money = { amountNano: 1_000_000_000n, paymentType: 'one_time', operationKey: 'fund' } as const;
  await topUp(fixture.sql, { workspaceId, ...money });
  await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  host = `127.0.0.1:${(fixture.app.server.address() as { port: number }).port}`;
});
afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

function snippets(language: string): string[] {
  const code = [...guide.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g'))].map(([, text]) => text!);
  return code.map((text) => text.replaceAll('localhost:8080', host));
}

async function bash(script: string): Promise<string> {
  const { stdout } = await run('bash', ['-c', script], { env: { ...process.env, KEY: fixture.owner.key } });
  return stdout;
}

const hasTools = ['curl', 'jq'].every((tool) => spawnSync(tool, ['--version']).status === 0);

describe('guide to chats', () => {
  it.runIf(hasTools)('streams a chat with the documented frames in order', async () => {
    fixture.models.queue('It joins two others.');
    const frames = (await bash(snippets('sh')[0]!))
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => line.slice(6));
    expect(frames.at(-1)).toBe('[DONE]');
    const kinds = frames.slice(0, -1).map((frame) => JSON.parse(frame).type ?? 'chunk');
    expect(kinds).toEqual(['chat_id', 'chunk', 'chunk', 'done']);
  });

  it('chats through the OpenAI client', async () => {
    fixture.models.queue({ text: ['It joins ', 'two others.'] });
    const file = join(folder, 'ask.mjs');
    await writeFile(file, snippets('js')[0]!);
    const { stdout } = await run(process.execPath, [file], { env: { ...process.env, KEY: fixture.owner.key } });
    expect(stdout).toBe('It joins two others.');
  });

  it.runIf(hasTools)('continues a chat', async () => {
    fixture.models.queue('Hello Ada.', 'Ada.');
    expect(JSON.parse(await bash(snippets('sh')[1]!)).choices[0].message.content).toBe('Ada.');
    expect(fixture.models.requests.at(-1)!.messages.map(({ content }) => content)).toEqual([
      'My name is Ada.',
      'Hello Ada.',
      'What is my name?',
    ]);
  });

  it.runIf(hasTools)('corrects a text', async () => {
    const { models } = fixture.models;
    fixture.models.models = [];
    const answer = JSON.parse(await bash(snippets('sh')[2]!));
    fixture.models.models = models;
    expect(answer.choices[0].message.content).toContain('Tandem bikes');
  });

  it('names only fields and codes that exist', () => {
    const rows = [...guide.matchAll(/^\| (`[a-z_.`, or]+)\s*\| /gm)].flatMap(
      ([, cell]) => cell!.match(/[a-z_]+(?=[.`])/g)!,
    );
    expect(rows.length).toBeGreaterThan(10);
    const known = Object.keys(CompletionBody.properties);
    expect(rows.filter((name) => !known.includes(name) && name !== 'include_usage')).toEqual([]);
    const codes = guide.match(/`[A-Z]+(_[A-Z]+)+`/g)!.map((code) => code.slice(1, -1));
    const settings = ['LLM_BASE_URL', 'LLM_MODEL_PATH'];
    expect(codes.filter((code) => !(code in ERROR_CATALOGUE) && !settings.includes(code))).toEqual([]);
  });
});
