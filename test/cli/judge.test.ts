import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { topUp } from '../../storage/ledger.ts';
import { createHttpFixture, type HttpFixture } from '../http/fixture.ts';
import { firstAnswers } from '../language/judge/rubrics.ts';
import { serverFolder, tandem, tandemProcess } from './command-line.ts';

const QUESTIONS = {
  polite: { type: 'boolean', question: 'Is it polite?' },
  greeting: { type: 'choice', criteria: { by_name: 'With the name.', none: 'Not at all.' } },
};

let fixture: HttpFixture;
let folder: Awaited<ReturnType<typeof serverFolder>>;
let env: Record<string, string>;

beforeAll(async () => {
  fixture = await createHttpFixture();
  fixture.models.otherwise = firstAnswers;
  const url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  env = { TANDEM_URL: url, TANDEM_API_KEY: fixture.owner.key };
  folder = await serverFolder();
  await writeFile(join(folder.path, 'support.json'), JSON.stringify(QUESTIONS));
  await writeFile(join(folder.path, 'list.json'), '[]');
  const { workspaceId } = fixture.owner;
  await topUp(fixture.sql, { workspaceId, amountNano: 10n ** 10n, paymentType: 'one_time', operationKey: 'judge-cli' });
});

afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const run = (...argv: string[]) => tandem(['judge', ...argv], { cwd: folder.path, env });

describe('tandem judge', () => {
  it('adds and lists a rubric, and judges by its name or id', async () => {
    expect((await run('rubrics')).stdout).toBe('There is none yet: tandem judge add makes one.\n');
    const { exitCode, document } = await run('add', 'Support call', 'support.json', '--shared', '--json');
    expect(exitCode).toBe(0);
    const { id } = document.data as { id: string };
    expect((await run('rubrics', '--mine')).stdout).toMatch(
      new RegExp(`^ID +NAME +QUESTIONS +SEEN BY +MADE BY\\n${id} +Support call +2 +shared +you\\n$`),
    );
    for (const rubric of ['support CALL', id]) {
      const judged = await run('evaluate', rubric, 'Good morning, Asha!', '--input', 'Hello?', '--json');
      expect([judged.exitCode, judged.document.data]).toEqual([0, expect.objectContaining({ rubric_id: id })]);
    }
  });

  it('judges by the questions of a file, with reasons', async () => {
    const { exitCode, stdout, stderr } = await run('evaluate', 'support.json', 'Good morning, Asha!', '--samples', '2');
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^QUESTION +ANSWER +SURE +REASON\npolite +(yes|no) +\d+ % +It came first\.\n/);
    expect(stdout).toMatch(/\nIt is what it is\.\n\ntiny-1\.0, \d+ tokens, [\d.]+ USD\n$/);
  });

  it('judges standard input', async () => {
    const options = { cwd: folder.path, env, stdin: 'Good morning!\n' };
    const { document } = await tandemProcess(['judge', 'evaluate', 'support.json', '-', '--json'], options);
    expect(document).toMatchObject({ success: true, data: { results: { polite: { type: 'boolean' } } } });
  });

  it.each([
    { argv: ['evaluate', 'support.json'], code: 'USAGE', exitCode: 2 },
    { argv: ['evaluate', 'support.json', 'x', '--call', 'c'], code: 'USAGE', exitCode: 2 },
    { argv: ['evaluate', 'support.json', 'x', '--samples', 'two'], code: 'USAGE', exitCode: 2 },
    { argv: ['evaluate', 'nobody', 'x'], code: 'RUBRIC_NOT_FOUND', exitCode: 1 },
    { argv: ['evaluate', 'nowhere.json', 'x'], code: 'NO_SUCH_FILE', exitCode: 1 },
    { argv: ['evaluate', 'list.json', 'x'], code: 'NO_QUESTIONS', exitCode: 1 },
    { argv: ['evaluate', 'support.json', '--call', 'nowhere'], code: 'CALL_NOT_FOUND', exitCode: 1 },
    { argv: ['evaluate', 'support.json', ' '], code: 'VALIDATION_FAILED', exitCode: 1 },
    { argv: ['add', 'Empty', 'list.json'], code: 'NO_QUESTIONS', exitCode: 1 },
  ])('rejects $argv with $code', async ({ argv, code, exitCode }) => {
    const answer = await run(...argv, '--json');
    expect(answer.exitCode).toBe(exitCode);
    expect(answer.document).toMatchObject({ success: false, code });
  });

  it('suggests a similar rubric name', async () => {
    const { stderr } = await run('evaluate', 'Suport call', 'x');
    expect(stderr).toMatch(
      /^tandem: there is no rubric "Suport call", did you mean Support call\?.*tandem judge rubrics/,
    );
  });
});
