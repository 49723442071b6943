import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { walletOf } from '../../storage/ledger.ts';
import { untilTruthy } from '../eventually.ts';
import { startModelServer } from '../language/model-server.ts';
import { API_KEY, clean, cleanUp, dataFolder, fund, type Ready, startReady, withDatabase } from './ready-server.ts';

const TOKEN_NANO = 20_000n;

afterEach(cleanUp);

it('after kill -9 during an answer, the next start releases the hold, and the chat continues', async () => {
  const models = await startModelServer();
  clean.push(() => models[Symbol.asyncDispose]());
  const env = { LLM_BASE_URL: models.baseUrl, LLM_MODEL: 'tiny-1.0', LOG_LEVEL: 'trace' };
  const dataDir = await dataFolder();
  const first = await startReady(dataDir, env);
  await withDatabase(dataDir, (sql) => fund(sql, first.workspaceId));
  models.chat({ text: 'Seven lanterns.', usage: { prompt_tokens: 20, completion_tokens: 5 } });
  const { chat_id: chatId } = await whole(first, { messages: [{ role: 'user', content: 'How many lanterns?' }] });
  const before = (await walletOfWorkspace(first)).balanceNano;
  expect(before).toBe(5_000_000_000n - 25n * TOKEN_NANO);

  models.chat({ text: ['Brass', ' lanterns'], hang: 'late' });
  const ask = { chat_id: chatId, messages: [{ role: 'user', content: 'Which lanterns?' }] };
  const answer = await post(first, { ...ask, stream: true });
  await once(answer, 'readable');
  expect((await walletOfWorkspace(first)).heldNano).toBeGreaterThan(0n);
  first.server.child.kill('SIGKILL');
  await first.server.exited;
  // The model request ended too.
  expect(await (await models.request('/chat/completions', 2)).isLeft).toBe(true);

  const second = await startReady(dataDir, env);
  expect(await walletOfWorkspace(second)).toMatchObject({ balanceNano: before, heldNano: 0n });
  const rows = await withDatabase(
    dataDir,
    (sql) => sql<{ state: string; error: string | null }[]>`select state, error from completions order by created_at`,
  );
  expect(rows.map(({ state, error }) => [state, error])).toEqual([
    ['completed', null],
    ['failed', 'INTERRUPTED'],
  ]);
  models.chat({ text: 'Brass ones.', usage: { prompt_tokens: 30, completion_tokens: 3 } });
  const { choices } = await whole(second, ask);
  expect(choices[0]!.message.content).toBe('Brass ones.');
  const { body } = await models.request('/chat/completions', 3);
  expect(body.messages.map(({ content }: { content: string }) => content)).toEqual([
    'How many lanterns?',
    'Seven lanterns.',
    'Which lanterns?',
  ]);
  expect((await walletOfWorkspace(second)).balanceNano).toBe(before - 33n * TOKEN_NANO);
  for (const { server } of [first, second]) expect(server.output()).not.toContain('antern');
});

it('a stop during an answer ends it with an error, free of charge', async () => {
  const models = await startModelServer();
  clean.push(() => models[Symbol.asyncDispose]());
  const dataDir = await dataFolder();
  const ready = await startReady(dataDir, { LLM_BASE_URL: models.baseUrl, LLM_MODEL: 'tiny-1.0' });
  await withDatabase(dataDir, (sql) => fund(sql, ready.workspaceId));
  models.chat({ text: ['one', ' two'], hang: 'late' });
  const answer = await post(ready, { messages: [{ role: 'user', content: 'Count.' }], stream: true });
  let seen = '';
  answer.setEncoding('utf8').on('data', (text: string) => {
    seen += text;
  });
  await untilTruthy(() => seen.includes('" two"'), 'both words have come');
  ready.server.child.kill('SIGTERM');
  ready.server.child.kill('SIGINT');
  await once(answer, 'close');
  expect(seen).toContain('"code":"SHUTTING_DOWN"');
  expect(seen).not.toContain('[DONE]');
  await ready.server.exited;
  const again = await startReady(dataDir);
  expect(await walletOfWorkspace(again)).toMatchObject({ balanceNano: 5_000_000_000n, heldNano: 0n });
});

async function post({ url }: Ready, body: object): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' };
  const asking = request(`${url}/v1/chat/completions`, { method: 'POST', headers });
  asking.on('error', () => undefined).end(JSON.stringify(body));
  const [answer] = (await once(asking, 'response')) as [IncomingMessage];
  return answer.on('error', () => undefined);
}

interface Whole {
  chat_id?: string;
  choices: { message: { content: string } }[];
}

async function whole(ready: Ready, body: object): Promise<Whole> {
  const answer = await post(ready, { ...body, stream: false });
  let text = '';
  for await (const piece of answer.setEncoding('utf8')) text += piece;
  expect(answer.statusCode, text).toBe(200);
  return JSON.parse(text) as Whole;
}

async function walletOfWorkspace({ dataDir, workspaceId }: Ready) {
  return await withDatabase(dataDir, (sql) => walletOf(sql, workspaceId));
}
