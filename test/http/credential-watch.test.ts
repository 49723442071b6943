import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { expect, it } from 'vitest';
import type { Principal } from '../../http/auth.ts';
import { abortWithClient } from '../../http/credential-watch.ts';
import { createRevocations } from '../../http/revocations.ts';
import { fakeSql } from '../storage/fake-sql.ts';

const PRINCIPAL: Principal = {
  userId: 1,
  placedVia: 'api_key',
  apiKeyId: 1,
  apiKeyName: 'key',
  scopes: [],
  sessionId: null,
  expiresAt: null,
  workspaceId: '7c1d2f5e-4a7b-4f0e-9b5c-1f2e3d4c5b6a',
  plan: 'pro',
  role: 'owner',
};

function openResponse() {
  const raw = new ServerResponse(new IncomingMessage(new Socket()));
  const server = new AbortController();
  const context = {
    sql: fakeSql(async () => []),
    now: () => new Date(),
    heartbeatMs: 60_000,
    revocations: createRevocations(),
    closing: server.signal,
  };
  const ended = new AbortController();
  const watch = () => abortWithClient(context, { principal: PRINCIPAL, reply: { raw } as FastifyReply, ended });
  return { raw, server, ended: ended.signal, watch };
}

it('an open response ends when its client leaves, even before the watch starts', () => {
  for (const isEarly of [false, true]) {
    const { raw, ended, watch } = openResponse();
    if (isEarly) raw.destroy();
    watch();
    expect(ended.aborted).toBe(isEarly);
    raw.emit('close');
    expect(ended.aborted).toBe(true);
  }
});

it('an open response ends when the server closes, even before the watch starts', () => {
  for (const isEarly of [false, true]) {
    const { server, ended, watch } = openResponse();
    if (isEarly) server.abort();
    watch();
    expect(ended.aborted).toBe(isEarly);
    server.abort();
    expect(ended.reason).toMatchObject({ code: 'SHUTTING_DOWN' });
  }
});
