import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { topUp } from '../../storage/ledger.ts';
import { createHttpFixture, type HttpFixture } from '../http/fixture.ts';
import { startBreakingServer } from './breaking-server.ts';
import { EXECUTABLE, serverFolder, startTandemProcess, tandem, tandemProcess } from './command-line.ts';

let fixture: HttpFixture;
let folder: Awaited<ReturnType<typeof serverFolder>>;
let env: Record<string, string>;

beforeAll(async () => {
  fixture = await createHttpFixture();
  const url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  env = { TANDEM_URL: url, TANDEM_API_KEY: fixture.owner.key };
  folder = await serverFolder();
  const { workspaceId } = fixture.owner;
  await topUp(fixture.sql, { workspaceId, amountNano: 10n ** 10n, paymentType: 'one_time', operationKey: 'chat-cli' });
});

afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

beforeEach(() => {
  fixture.models.requests.length = 0;
});

const run = (...argv: string[]) => tandem(['chat', ...argv], { cwd: folder.path, env });
const lastAsked = () => fixture.models.requests.at(-1)!;

describe('tandem chat', () => {
  it('prints only the answer into a pipe', async () => {
    fixture.models.queue({ text: ['An exchange ', 'that joins two others.'] });
    const { exitCode, stdout, stderr } = await run('What is a tandem?');
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: 'An exchange that joins two others.\n',
      stderr: '',
    });
    expect(lastAsked().messages).toEqual([{ role: 'user', content: 'What is a tandem?' }]);
  });

  it('prints each chunk as it arrives', async () => {
    fixture.models.queue({ text: 'An exchange', neverEnds: true });
    const command = startTandemProcess(['chat', 'What is a tandem?'], { cwd: folder.path, env });
    await command.untilPrinted('An exchange');
    command.interrupt();
    expect((await command.ended).exitCode).not.toBe(0);
  });

  it('prints the whole response with --json, and continues a chat', async () => {
    fixture.models.queue({ text: 'Hello.', usage: { promptTokens: 9, completionTokens: 3 } }, 'Again.');
    const first = await run('Hi', '--system', 'Be brief.', '--json');
    expect(first.document.data).toEqual({
      chat_id: expect.stringMatching(/^chat_/),
      model: 'tiny-1.0',
      text: 'Hello.',
      reasoning: null,
      finish_reason: 'stop',
      usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
      cost_usd: '0.00024',
    });
    const { chat_id: chatId } = first.document.data as { chat_id: string };
    const second = await run('And now?', '--chat', chatId, '--json');
    expect(second.document.data).toMatchObject({ chat_id: chatId, text: 'Again.' });
    expect(lastAsked().messages.map(({ content }) => content)).toEqual(['Be brief.', 'Hi', 'Hello.', 'And now?']);
  });

  it('forwards its options', async () => {
    fixture.models.queue({ reasoning: 'Hm, so.', text: 'Yes.' });
    const { stdout } = await run('Well?', '--model', 'tiny-1.0', '--thinking', '--max-tokens', '7', '--no-save');
    expect(stdout).toBe('Hm, so.\n\nYes.\n');
    expect(lastAsked()).toMatchObject({ model: 'tiny-1.0', enableThinking: true, maxTokens: 7 });
  });

  it('reads the message from standard input, with - or without an argument', async () => {
    for (const argv of [['-'], []]) {
      await tandemProcess(['chat', ...argv], { cwd: folder.path, env, stdin: 'What is\na tandem?\n' });
      expect(lastAsked().messages).toEqual([{ role: 'user', content: 'What is\na tandem?' }]);
    }
  });

  it('corrects a text', async () => {
    fixture.models.queue('We ship Tandem on Monday.');
    const corrected = await run(
      'we ship tandem on monday',
      '--correct',
      '--replace',
      'tandem=Tandem',
      '--tone',
      'formal',
    );
    expect(corrected).toMatchObject({ exitCode: 0, stdout: 'We ship Tandem on Monday.\n' });
  });

  it('removes control characters from an answer', async () => {
    fixture.models.queue('Red: \u001B[31m\u0007 line\nnext');
    expect((await run('Hi')).stdout).toBe('Red:  [31m  line\nnext\n');
  });

  it('prints errors before and within an answer', async () => {
    fixture.models.queue(new TandemError('LLM_UNAVAILABLE', 'The model is away.'));
    const before = await run('Hi');
    expect([before.exitCode, before.stdout]).toEqual([1, '']);
    expect(before.stderr).toMatch(/^tandem: .*LLM_UNAVAILABLE, 503.*\n$/);
    fixture.models.queue({ text: 'One, two', error: new TandemError('LLM_UNAVAILABLE', 'The model is away.') });
    const within = await run('Count');
    expect([within.exitCode, within.stdout]).toEqual([1, 'One, two\n']);
    expect(within.stderr).toMatch(/^tandem: .*LLM_UNAVAILABLE.*\n$/);
  });

  it('reports a lost connection in one line, below what it has printed', async () => {
    await using server = await startBreakingServer('data: {"choices":[{"delta":{"content":"One, two"}}]}\n\n');
    const { exitCode, stdout, stderr } = await run('Count', '--url', server.url);
    expect([exitCode, stdout]).toEqual([1, 'One, two\n']);
    expect(stderr).toBe(`tandem: the answer of ${server.url} was broken off: try again.\n`);
  });

  it('explains how to configure a model when none exists', async () => {
    const { models } = fixture.models;
    fixture.models.models = [];
    const { exitCode, document } = await run('Hi', '--json');
    fixture.models.models = models;
    expect([exitCode, document]).toEqual([1, expect.objectContaining({ code: 'LLM_NOT_CONFIGURED' })]);
  });

  it.each([
    { argv: ['Hi', '--correct', '--system', 'x'], says: '--system does not go with --correct' },
    { argv: ['Hi', '--tone', 'formal'], says: '--tone needs --correct' },
    { argv: ['Hi', '--correct', '--replace', 'tandem'], says: '--replace takes TERM=TEXT' },
    { argv: ['Hi', '--max-tokens', 'many'], says: '--max-tokens takes a number' },
    { argv: [' '], says: 'MESSAGE is empty' },
    { argv: [], says: 'MESSAGE is empty' },
  ])('rejects $argv', async ({ argv, says }) => {
    const { exitCode, stdout, stderr } = await run(...argv);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toContain(says);
  });

  it('runs a conversation on a terminal, which continues after an error', async () => {
    fixture.models.queue('Hello.', new TandemError('LLM_UNAVAILABLE', 'The model is away.'), 'Still here.');
    const command = startTandemProcess(['-qec', `${EXECUTABLE} chat --system Brief`, '/dev/null'], {
      ...{ cwd: folder.path, env: { ...env, TERM: 'dumb', NO_COLOR: '1' } },
      ...{ executable: 'script', stdin: 'Hi\nWell?\nAnd now?\n\u0004' },
    });
    const { exitCode, stdout } = await command.ended;
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/Hello\..*\d+ tokens, [\d.]+ USD, --chat chat_.*LLM_UNAVAILABLE.*Still here\./s);
    expect(lastAsked().messages.map(({ content }) => content)).toEqual(['Brief', 'Hi', 'Hello.', 'And now?']);
  });
});
