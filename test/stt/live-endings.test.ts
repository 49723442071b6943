import { expect, it } from 'vitest';

import { createFakeSpeech } from '../actors/stt-fakes.ts';
import { eventually } from '../eventually.ts';
import { connectStt, type SttClient, startStt } from '../http/stt-client.ts';
import { type LiveServer, startLiveServer } from './live-server.ts';

async function session(options: Parameters<typeof startLiveServer>[1] = {}) {
  const speech = createFakeSpeech();
  const server = await startLiveServer(speech, options);
  const client = connectStt(server.origin, { apiKey: server.fixture.owner.key });
  await startStt(client);
  return { ...speech, server, client, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

async function expectNothingLeft(server: LiveServer, { listening, recognition }: ReturnType<typeof createFakeSpeech>) {
  await eventually(() => expect(server.stt.count()).toBe(0));
  expect(listening.live).toEqual([]);
  expect(recognition.live).toEqual([]);
}

function lastTypes(client: SttClient, count: number): string[] {
  return client.types().slice(-count);
}

it('an empty wallet ends the session with an error and without the unpaid transcript', async () => {
  await using opened = await session({ balanceNano: 300_000n });
  const { client, recognition, server } = opened;
  recognition.stream.recognise(1, 'this is covered');
  await client.until('transcription');
  recognition.stream.recognise(2, 'this is not');
  expect(await client.closed).toBe(1008);
  expect(lastTypes(client, 4)).toEqual(['transcription', 'error', 'billing_summary', 'connection_closed']);
  expect(client.messages.at(-3)).toMatchObject({
    type: 'error',
    error: { code: 'INSUFFICIENT_CREDITS', message: expect.any(String), details: { available: 0.0001 } },
  });
  await expectNothingLeft(server, opened);
});

it('a deleted key ends the session with an error before the close', async () => {
  await using opened = await session();
  const { client, server } = opened;
  const { owner } = server.fixture;
  await server.fixture.call('DELETE', `/developer/api/${owner.keyId}`, { as: owner });
  expect(await client.closed).toBe(1008);
  expect(lastTypes(client, 3)).toEqual(['error', 'billing_summary', 'connection_closed']);
  expect(client.messages.at(-3)).toMatchObject({ code: 'AUTH_FAILED' });
  await expectNothingLeft(server, opened);
});

it('an expired key ends the session', async () => {
  await using opened = await session({ heartbeatMs: 20 });
  const { client, server } = opened;
  const { owner, sql } = server.fixture;
  // Set by another process, so this one notices at its next check.
  await sql`update api_keys set expires_at = now() - interval '1 second' where id = ${owner.keyId}`;
  expect(await client.closed).toBe(1008);
  expect(client.messages.at(-3)).toMatchObject({ code: 'AUTH_FAILED' });
});

it('a recogniser that lags too far ends the session with 1013', async () => {
  await using opened = await session();
  const { client, recognition, server } = opened;
  recognition.stream.emit({ type: 'recognition.overloaded', lagMs: 31_000 });
  expect(await client.closed).toBe(1013);
  expect(client.messages.at(-3)).toMatchObject({ type: 'error', code: 'overloaded' });
  await expectNothingLeft(server, opened);
});

it('a closing server reports the last transcript, then the reason', async () => {
  await using opened = await session();
  const { client, listening, recognition, server } = opened;
  const finishing = Promise.withResolvers<void>();
  listening.onFinish = () => finishing.resolve();
  const closed = server.fixture.app.close();
  await finishing.promise;
  recognition.stream.recognise(1, 'the last words');
  recognition.stream.emit({ type: 'recognition.ended' });
  await closed;
  expect(await client.closed).toBe(1012);
  expect(lastTypes(client, 4)).toEqual(['transcription', 'error', 'billing_summary', 'connection_closed']);
  expect(client.messages.at(-4)).toMatchObject({ text: 'the last words' });
  expect(client.messages.at(-3)).toMatchObject({ type: 'error', code: 'SHUTTING_DOWN' });
  await expectNothingLeft(server, opened);
});

it('a vanished client leaves nothing behind', async () => {
  const speech = createFakeSpeech();
  await using server = await startLiveServer(speech, { sttTimes: { pingEveryMs: 200, pongWithinMs: 100 } });
  const client = connectStt(server.origin, { apiKey: server.fixture.owner.key }, { autoPong: false });
  await startStt(client);
  await client.closed;
  await expectNothingLeft(server, speech);
});
