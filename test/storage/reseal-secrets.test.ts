import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { inTransaction } from '../../storage/database.ts';
import { admitCall } from '../../storage/queries/calls.ts';
import { type ForwardRule, findCalledNumbers, type InboundRule } from '../../storage/queries/inbound-rules.ts';
import { rentNumber, setInboundRule } from '../../storage/queries/numbers.ts';
import { resealSecrets, SEALED_COLUMNS, warnOfUnknownKeys } from '../../storage/reseal-secrets.ts';
import {
  callbackSecretContext,
  idempotentRequestContext,
  signingKeyContext,
  trunkInboundPasswordContext,
  trunkPasswordContext,
  webhookSecretContext,
} from '../../storage/secret-contexts.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { untilTruthy } from '../eventually.ts';
import { onEveryServer } from './every-server.ts';
import { admission, NOW, seedTrunk, seedWorkspace, USD } from './seed.ts';

const [OLDEST_KEY, OLD_KEY, NEW_KEY, LOST_KEY] = [1, 2, 3, 4].map((fill) => Buffer.alloc(32, fill)) as [
  Buffer,
  Buffer,
  Buffer,
  Buffer,
];
const oldest = createSecretBox(OLDEST_KEY);
const old = createSecretBox(OLD_KEY);
const current = createSecretBox(NEW_KEY, [OLD_KEY, OLDEST_KEY]);
const afterwards = createSecretBox(NEW_KEY);

it('a secret box opens secrets of earlier keys and seals with the current one', () => {
  expect(current.open(oldest.seal('a', 'c'), 'c')).toBe('a');
  expect(current.open(old.seal('b', 'c'), 'c')).toBe('b');
  expect(afterwards.open(current.seal('d', 'c'), 'c')).toBe('d');
  expect(() => afterwards.open(old.seal('b', 'c'), 'c')).toThrow(expect.objectContaining({ code: 'UNKNOWN_KEY' }));
  expect(() => current.open(old.seal('b', 'c'), 'e')).toThrow(expect.objectContaining({ code: 'NOT_AUTHENTIC' }));
  expect(() => createSecretBox(NEW_KEY, [Buffer.alloc(31)])).toThrow(RangeError);
});

onEveryServer('master key rotation', (database) => {
  const logged: { message: string; fields: object }[] = [];
  const log = (fields: object, message: string) => void logged.push({ message, fields });
  const options = { logger: { info: log, warn: log, error: log } };

  async function seedSecrets() {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql, { balanceNano: 1_000n * USD });
    const trunk = await seedTrunk(sql, { workspaceId: workspace.id, channels: 100 });
    await sql`update trunks set password_encrypted = ${oldest.seal('trunk password', trunkPasswordContext(trunk.id))},
      inbound_username = 'pbx',
      inbound_password_encrypted = ${oldest.seal('inbound password', trunkInboundPasswordContext(trunk.id))}`;
    for (let index = 0; index < 7; index += 1) {
      const callbackSecretEncrypted = old.seal(`secret ${index}`, callbackSecretContext(workspace.id));
      const { call } = await admitCall(
        sql,
        admission({
          workspaceId: workspace.id,
          referenceId: `call-${index}`,
          callbackUrl: 'https://crm.example/hook',
          callbackSecretEncrypted,
          callbackSecretLast4: 'last',
        }),
      );
      await sql`
        insert into deliveries (id, workspace_id, call_id, event, event_id, url, body, secret_encrypted, next_attempt_at, created_at)
        values (${randomUUID()}, ${workspace.id}, ${call.callId}, 'call.completed', ${randomUUID()}, 'https://a.example', '{}',
          ${callbackSecretEncrypted}, ${NOW}, ${NOW})`;
    }
    await sql`
      insert into signing_keys ${sql({
        id: 'kid-1',
        algorithm: 'EdDSA',
        privateKeyEncrypted: old.seal('private half', signingKeyContext('kid-1')),
        publicKey: sql.json({}),
        createdAt: NOW,
      })}`;
    const webhookId = randomUUID();
    await sql`
      insert into webhook_subscriptions ${sql({
        id: webhookId,
        workspaceId: workspace.id,
        url: 'https://crm.example/hook',
        events: ['stt.completed'],
        createdAt: NOW,
        updatedAt: NOW,
      })}`;
    await sql`
      insert into webhook_secrets (subscription_id, secret_encrypted, created_at)
      values (${webhookId}, ${old.seal('webhook secret', webhookSecretContext(webhookId))}, ${NOW})`;
    const requestId = randomUUID();
    await sql`
      insert into idempotent_requests (id, owner, operation, key_hash, record_encrypted, expires_at)
      values (${requestId}, 'user 1', 'POST /x', '\\x00', ${old.seal('response', idempotentRequestContext(requestId))}, ${NOW})`;
    return { sql, workspaceId: workspace.id, trunkId: trunk.id, webhookId, requestId };
  }

  it('re-encrypts every secret in batches and logs progress', async () => {
    const { sql, workspaceId, trunkId, webhookId, requestId } = await seedSecrets();
    logged.length = 0;
    expect(await resealSecrets(sql, current, { ...options, batchSize: 3 })).toEqual({ resealed: 19, unopened: 0 });
    const [trunk] = await sql`select password_encrypted, inbound_password_encrypted from trunks`;
    expect(afterwards.open(trunk?.passwordEncrypted, trunkPasswordContext(trunkId))).toBe('trunk password');
    expect(afterwards.open(trunk?.inboundPasswordEncrypted, trunkInboundPasswordContext(trunkId))).toBe(
      'inbound password',
    );
    const context = callbackSecretContext(workspaceId);
    const calls = await sql`select callback_secret_encrypted as sealed from calls order by reference_id`;
    expect(calls.map(({ sealed }) => afterwards.open(sealed, context))).toEqual(
      Array.from({ length: 7 }, (_, index) => `secret ${index}`),
    );
    const deliveries = await sql`select secret_encrypted as sealed from deliveries`;
    expect(new Set(deliveries.map(({ sealed }) => afterwards.open(sealed, context))).size).toBe(7);
    const [key] = await sql`select private_key_encrypted as sealed from signing_keys`;
    expect(afterwards.open(key?.sealed, signingKeyContext('kid-1'))).toBe('private half');
    const [webhook] = await sql`select secret_encrypted as sealed from webhook_secrets`;
    expect(afterwards.open(webhook?.sealed, webhookSecretContext(webhookId))).toBe('webhook secret');
    const [request] = await sql`select record_encrypted as sealed from idempotent_requests`;
    expect(afterwards.open(request?.sealed, idempotentRequestContext(requestId))).toBe('response');
    expect(logged.filter(({ fields }) => 'table' in fields && fields.table === 'calls')).toMatchObject([
      { fields: { resealed: 3 } },
      { fields: { resealed: 6 } },
      { fields: { resealed: 7 } },
    ]);
    expect(JSON.stringify(logged)).not.toMatch(/secret \d|trunk password/);
  });

  it('re-encrypts the secrets in rules for inbound calls', async () => {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql);
    const { id: workspaceId } = workspace;
    const e164s = ['+911140000001', '+911140000002', '+911140000003'];
    // Rents the first.
    await seedTrunk(sql, { workspaceId, numbers: e164s });
    for (const e164 of e164s.slice(1)) await rentNumber(sql, { workspaceId, e164, now: NOW });
    const context = callbackSecretContext(workspaceId);
    const sealed = (secret: string) => old.seal(secret, context).toString('base64');
    const forward: ForwardRule = {
      action: 'forward',
      ...{ endpoint: { type: 'phone', number: '+911140000009' }, ringTimeoutS: 30, maxDurationS: 60 },
      ...{ record: false, transcribe: false, announce: null, voiceId: null },
    };
    const rules: InboundRule[] = [
      {
        action: 'ask',
        ...{ url: 'https://crm.example/calls', secretSealed: sealed('question'), secretLast4: 'tion' },
        fallback: { ...forward, callbackUrl: null, callbackSecretSealed: null },
      },
      { ...forward, callbackUrl: 'https://crm.example/hook', callbackSecretSealed: sealed('callback') },
      { action: 'reject' },
    ];
    for (const [index, rule] of rules.entries()) {
      await setInboundRule(sql, { workspaceId, e164: e164s[index]!, rule });
    }
    expect(await resealSecrets(sql, current, { ...options, batchSize: 1 })).toEqual({ resealed: 2, unopened: 0 });
    const [ask, hook, reject] = (await findCalledNumbers(sql, e164s))
      .sort((a, b) => (a.e164 < b.e164 ? -1 : 1))
      .map(({ inbound }) => inbound as unknown as Record<string, string>);
    const opened = (text = '') => afterwards.open(Buffer.from(text, 'base64'), context);
    expect([opened(ask?.secretSealed), opened(hook?.callbackSecretSealed)]).toEqual(['question', 'callback']);
    expect(ask).toEqual({ ...rules[0], secretSealed: expect.any(String) });
    expect(hook).toEqual({ ...rules[1], callbackSecretSealed: expect.any(String) });
    expect(reject).toEqual(rules[2]);
    expect(await resealSecrets(sql, current, options)).toEqual({ resealed: 0, unopened: 0 });
  });

  it('changes nothing when repeated or without secrets', async () => {
    const { sql } = await seedSecrets();
    await resealSecrets(sql, current, options);
    const before = await sql`select password_encrypted from trunks`;
    expect(await resealSecrets(sql, current, options)).toEqual({ resealed: 0, unopened: 0 });
    expect(await sql`select password_encrypted from trunks`).toEqual(before);
  });

  it('skips and reports undecryptable secrets, and continues', async () => {
    const { sql, trunkId } = await seedSecrets();
    const lost = createSecretBox(LOST_KEY).seal('gone', trunkPasswordContext(trunkId));
    await sql`update trunks set password_encrypted = ${lost}`;
    logged.length = 0;
    expect(await resealSecrets(sql, current, { ...options, batchSize: 1 })).toEqual({ resealed: 18, unopened: 1 });
    const [trunk] = await sql`select password_encrypted as sealed from trunks`;
    expect(lost.equals(trunk?.sealed)).toBe(true);
    expect(logged.map(({ message }) => message)).toContain('skipped secrets that no key decrypts');
  });

  it('warns of secrets that no key decrypts, but not of those that another node still encrypts with an earlier key', async () => {
    const { sql } = await seedSecrets();
    logged.length = 0;
    await warnOfUnknownKeys(sql, [NEW_KEY, OLD_KEY, OLDEST_KEY], options);
    expect(logged).toEqual([]);
    await warnOfUnknownKeys(sql, [NEW_KEY, OLD_KEY], options);
    expect(logged).toMatchObject([{ message: expect.stringMatching(/^no key decrypts /) }]);
  });

  it('keeps concurrent changes of a running node', async () => {
    const { sql, trunkId } = await seedSecrets();
    const replaced = current.seal('replaced meanwhile', trunkPasswordContext(trunkId));
    let resealing: Promise<unknown> = Promise.resolve();
    await inTransaction(sql, async (tx) => {
      await tx`update trunks set password_encrypted = ${replaced}`;
      resealing = resealSecrets(sql, current, options);
      await untilTruthy(async () => {
        const [row] = await sql`
          select count(*)::int as waiting from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query ~ 'update "?trunks'`;
        return row?.waiting === 1;
      }, 'the new seal waits for the row');
    });
    await resealing;
    const [trunk] = await sql`select password_encrypted as sealed from trunks`;
    expect(afterwards.open(trunk?.sealed, trunkPasswordContext(trunkId))).toBe('replaced meanwhile');
  });

  it('covers every encrypted column', async () => {
    const { sql } = database();
    const columns = await sql<{ name: string }[]>`
      select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and data_type = 'bytea' and column_name ~ '(encrypted|sealed)$'`;
    expect(columns.map(({ name }) => name).sort()).toEqual(
      SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`).sort(),
    );
  });
});
