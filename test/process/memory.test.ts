import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { walletOf } from '../../storage/ledger.ts';
import { eventually, untilTruthy } from '../eventually.ts';
import { clean, cleanUp, dataFolder, fund, type Ready, startReady, withDatabase } from './ready-server.ts';

const TEXT = 'The violet lantern hangs at the harbour gate. Asha Rao lights it at seven.';
const COST_NANO = BigInt(TEXT.length) * 100n;

afterEach(cleanUp);

describe('kill -9 while a memory is processed', () => {
  it('lets the next start continue: stored once, charged once, and searchable throughout', async () => {
    const embeddings = await startEmbeddings();
    const env = { EMBEDDINGS_BASE_URL: embeddings.url, EMBEDDINGS_MODEL: 'points-1', LOG_LEVEL: 'trace' };
    const dataDir = await dataFolder();
    const first = await startReady(dataDir, env);
    await withDatabase(dataDir, (sql) => fund(sql, first.workspaceId));
    const funded = await balanceOf(first);

    embeddings.isStuck = true;
    const { results } = await first.api.post<{ results: { id: string }[] }>('/memory/ingest', { text: TEXT });
    const { id } = results[0]!;
    await untilTruthy(() => embeddings.asked > 0, 'the memory is being embedded');
    expect(await first.api.get(`/memory/${id}/status`)).toMatchObject({ status: 'processing', stage: 'embedding' });
    first.server.child.kill('SIGKILL');
    await first.server.exited;
    embeddings.isStuck = false;

    const second = await startReady(dataDir, env);
    const found = await second.api.post<{ results: { id: string }[] }>('/memory/search', { query: 'violet lanterns' });
    expect(found.results.map((hit) => hit.id)).toEqual([id]);
    const searched = BigInt('violet lanterns'.length) * 100n;
    // The lease of the dead process must expire first.
    await eventually(async () =>
      expect(await second.api.get(`/memory/${id}/status`)).toMatchObject({ status: 'ready' }),
    );
    expect(await second.api.get(`/memory/${id}`)).toMatchObject({ attempts: 2, text: TEXT, stored_as: 'chunks' });
    const units = await withDatabase(
      dataDir,
      (sql) => sql<{ kind: string; text: string }[]>`select kind, text from memory_units`,
    );
    expect(units).toEqual([{ kind: 'chunk', text: TEXT }]);
    expect(funded - (await balanceOf(second))).toBe(COST_NANO + searched);
    for (const { server } of [first, second]) expect(server.output()).not.toContain('violet');
  });
});

function balanceOf({ dataDir, workspaceId }: Ready): Promise<bigint> {
  return withDatabase(dataDir, async (sql) => (await walletOf(sql, workspaceId)).availableNano);
}

/** An embeddings server that the test can make hang. */
async function startEmbeddings() {
  const state = { isStuck: false, asked: 0, url: '' };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    state.asked += 1;
    if (state.isStuck) return;
    const { input } = JSON.parse(Buffer.concat(chunks).toString()) as { input: string | string[] };
    const data = [input].flat().map((_, index) => ({ object: 'embedding', index, embedding: [0.6, 0.8, 0] }));
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ object: 'list', model: 'points-1', data, usage: { prompt_tokens: 1, total_tokens: 1 } }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  clean.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return state;
}
