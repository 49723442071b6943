import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiClient } from '../../bin/cli/api-client.ts';
import { topUp } from '../../storage/ledger.ts';
import { createHttpFixture, type HttpFixture } from '../http/fixture.ts';
import { serverFolder, tandem, tandemProcess } from './command-line.ts';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

let fixture: HttpFixture;
let folder: Awaited<ReturnType<typeof serverFolder>>;
let env: Record<string, string>;

beforeAll(async () => {
  fixture = await createHttpFixture();
  const url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  env = { TANDEM_URL: url, TANDEM_API_KEY: fixture.owner.key };
  folder = await serverFolder();
  const { workspaceId } = fixture.owner;
  await topUp(fixture.sql, {
    workspaceId,
    amountNano: 10n ** 10n,
    paymentType: 'one_time',
    operationKey: 'memory-cli',
  });
});

afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const run = (...argv: string[]) => tandem(['memory', ...argv], { cwd: folder.path, env });

describe('tandem memory', () => {
  it('adds a text, waits until it is ready, and finds it', async () => {
    const added = await run(
      'add',
      'The harbour opens at seven.',
      '--no-infer',
      '--wait',
      '--title',
      'Harbour',
      '--json',
    );
    expect([added.exitCode, added.document.data]).toEqual([
      0,
      expect.objectContaining({ status: 'ready', error: null }),
    ]);
    const { id } = added.document.data as { id: string };
    const found = await run('search', 'When does the harbour open?');
    expect([found.exitCode, found.stderr]).toEqual([0, '']);
    expect(found.stdout).toMatch(new RegExp(`^[01]\\.\\d\\d  Harbour: The harbour opens at seven\\.\\n +${id}$`, 'm'));
    expect((await run('status', id)).stdout).toMatch(/^id +\S+\nstatus +ready\n/);
  });

  it('reads a text from standard input, and filters by metadata', async () => {
    for (const [year, remember] of [
      [2024, tandemProcess],
      [2025, tandem],
    ] as const) {
      const argv = ['memory', 'add', '-', '--no-infer', '--metadata', JSON.stringify({ year })];
      const { exitCode } = await remember(argv, {
        cwd: folder.path,
        env,
        stdin: `The lighthouse was painted in ${year}.\n`,
      });
      expect(exitCode).toBe(0);
    }
    const { document } = await run(
      'search',
      'lighthouse',
      '--filter',
      '{"year":{"$gte":2025}}',
      '--limit',
      '5',
      '--json',
    );
    expect(document.data).toMatchObject({ results: [{ memory: 'The lighthouse was painted in 2025.' }] });
  });

  it('stores a document', async () => {
    await writeFile(join(folder.path, 'tides.md'), '# Tides\n\nThe spring tide comes at noon.\n');
    const { exitCode, stdout } = await run('extract', 'tides.md', '--no-infer', '--wait');
    expect([exitCode, stdout]).toEqual([
      0,
      expect.stringMatching(/^document +markdown\ncharacters +\d+\nid +\S+\nstatus +ready\n/),
    ]);
    expect((await run('search', 'spring tide')).stdout).toContain('The spring tide comes at noon.');
  });

  it('prints each memory of a long document, and waits for all of them', async () => {
    await writeFile(join(folder.path, 'long.txt'), 'A pebble. '.repeat(10_010));
    const { exitCode, stdout } = await run('extract', 'long.txt', '--no-infer', '--wait');
    expect([exitCode, stdout.match(/^status +ready$/gm)]).toEqual([0, ['status    ready', 'status    ready']]);
    const again = await run('extract', 'long.txt', '--no-infer');
    expect(again.stdout.match(/^id +\S+$/gm)).toHaveLength(2);
  });

  it('lists collections', async () => {
    const { stdout } = await run('collections');
    expect(stdout).toMatch(/^ID +NAME +TYPE +MEMORIES\n\S+ +Personal +user +\d+\n/);
    expect((await run('collections', '--type', 'hive')).stdout).toBe(
      'There is none yet: tandem memory add makes your own.\n',
    );
  });

  it('lists all collections, which the server returns in several pages', async () => {
    const api = apiClient({ url: env.TANDEM_URL!, apiKey: fixture.owner.key });
    const labels = Array.from({ length: 101 }, (_, index) => `shelf ${index}`);
    for (const label of labels) await api.post('/memory/collections', { name: label, type: 'knowledge' });
    const { stdout } = await run('collections', '--type', 'knowledge');
    expect(labels.filter((label) => !stdout.includes(`  ${label}  `))).toEqual([]);
  });

  it('updates a memory, and names missing options', async () => {
    const { document } = await run('add', 'The ferry is green.', '--no-infer', '--title', 'Ferry', '--json');
    const [{ id }] = (document.data as { results: [{ id: string }] }).results;
    const updated = await run('update', id, '--text', 'The tugboat is green.', '--title', '', '--wait');
    expect([updated.exitCode, updated.stdout]).toEqual([0, expect.stringMatching(/^id +\S+\nstatus +ready\n/)]);
    expect((await run('search', 'tugboat')).stdout).toContain(`  The tugboat is green.\n      ${id}`);
    const relabelled = await run('update', id, '--metadata', '{"year":2026}', '--json');
    expect(relabelled.document.data).toMatchObject({ metadata: { year: 2026 }, title: null });
    expect(await run('update', id)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--text, --title') });
  });

  it('deletes a memory', async () => {
    const { document } = await run('add', 'The ferry is blue.', '--no-infer', '--json');
    const [{ id }] = (document.data as { results: [{ id: string }] }).results;
    expect((await run('delete', id)).stdout).toBe(`Memory ${id} is forgotten.\n`);
    expect((await run('search', 'ferry', '--threshold', '0.5')).stdout).toBe('Nothing like it is remembered.\n');
    expect((await run('status', id, '--json')).document).toMatchObject({ code: 'MEMORY_NOT_FOUND' });
  });

  it('removes control characters from memories', async () => {
    await run('add', 'Red \u001B[31m paint peels.', '--no-infer');
    const { stdout } = await run('search', 'paint peels');
    expect(stdout).toContain('Red  [31m paint peels.');
    expect(stdout).not.toContain('\u001B');
  });

  it.each([
    { argv: ['add', ' '], code: 'USAGE', exitCode: 2 },
    { argv: ['add', 'x', '--metadata', '[1]'], code: 'USAGE', exitCode: 2 },
    { argv: ['search', 'x', '--filter', '{'], code: 'USAGE', exitCode: 2 },
    { argv: ['search', 'x', '--limit', 'many'], code: 'USAGE', exitCode: 2 },
    { argv: ['search', ' '], code: 'VALIDATION_FAILED', exitCode: 1 },
    { argv: ['extract', 'nowhere.pdf'], code: 'NO_SUCH_FILE', exitCode: 1 },
    { argv: ['status', UNKNOWN], code: 'MEMORY_NOT_FOUND', exitCode: 1 },
    { argv: ['retry', UNKNOWN], code: 'MEMORY_NOT_FOUND', exitCode: 1 },
    { argv: ['delete', UNKNOWN], code: 'MEMORY_NOT_FOUND', exitCode: 1 },
  ])('rejects $argv with $code', async ({ argv, code, exitCode }) => {
    const answer = await run(...argv, '--json');
    expect(answer.exitCode).toBe(exitCode);
    expect(answer.document).toMatchObject({ success: false, code });
  });
});
