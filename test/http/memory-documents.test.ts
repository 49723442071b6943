import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createDocumentDesk } from '../../actors/documents/document-desk.actor.ts';
import type { DocumentDesk } from '../../actors/documents/document-desk.ts';
import type { DocumentReader, GivenDocument, ReadDocument } from '../../language/documents/document-reader.ts';
import { readDocument } from '../../language/documents/read-document.ts';
import type { TandemError } from '../../machines/errors.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { createLimitsInProcess } from '../../storage/limits/limits.ts';
import { setPrice } from '../../storage/price-book.ts';
import { eventually } from '../eventually.ts';
import { docxOf, paragraph } from '../language/documents/packages.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { fund, overdraw } from './memory-requests.ts';
import { type FormPart, field, formOf } from './multipart-body.ts';

/** The default of one second is too short for a busy machine. */
const URL_PATH = '/memory/documents/extract';

/** Reads at once, or when released by the test. */
class HeldReader implements DocumentReader {
  readonly reading: GivenDocument[] = [];
  readonly cancelled: string[] = [];
  isHeld = false;

  async read(document: GivenDocument, signal: AbortSignal): Promise<ReadDocument> {
    this.reading.push(document);
    if (!this.isHeld) return await readDocument(document);
    await once(signal, 'abort');
    this.cancelled.push((signal.reason as TandemError).code);
    throw signal.reason;
  }

  async close(): Promise<void> {}
}

let fixture: HttpFixture;
let folder: string;
let reader: HeldReader;
let documents: DocumentDesk;
let owner: Member;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-documents-http-'));
  reader = new HeldReader();
  const desk: DocumentDesk = { begin: (request) => documents.begin(request), close: async () => {} };
  fixture = await createHttpFixture({ documents: desk });
  const limits = createLimitsInProcess();
  documents = createDocumentDesk({ sql: fixture.sql, limits, tempDir: folder, reader, lanes: 1 });
});
afterAll(async () => {
  await documents.close();
  await fixture[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});
beforeEach(async () => {
  reader.isHeld = false;
  reader.reading.length = 0;
  owner = await fixture.addWorkspace();
  const { workspaceId } = owner;
  const operationKey = `fund:${workspaceId}`;
  await topUp(fixture.sql, { workspaceId, amountNano: 1_000_000_000n, paymentType: 'one_time', operationKey });
});

function fileOf(value: Buffer | string, filename = 'terms.docx'): FormPart {
  return { name: 'file', value, filename, type: 'application/octet-stream' };
}

async function send(parts: readonly FormPart[], as: Member = owner) {
  const { body, headers } = formOf(parts);
  return await fixture.call('POST', URL_PATH, { as, body, headers });
}

const balance = async () => (await walletOf(fixture.sql, owner.workspaceId)).availableNano;
const remainingFiles = async () => (await readdir(folder)).filter((name) => name.startsWith('document-'));

it('an extracted document costs its characters and becomes one searchable memory', async () => {
  const bytes = docxOf({
    title: 'Harbour rules',
    body: paragraph('Hours', '<w:pStyle w:val="Heading1"/>') + paragraph('The harbour opens at seven 😀.'),
  });
  const text = '# Hours\n\nThe harbour opens at seven 😀.';
  const { status, body, headers } = await send([
    field('metadata', '{"customer":"C-7"}'),
    field('infer', 'false'),
    fileOf(bytes, 'rules.docx'),
  ]);
  expect(body).toEqual({
    success: true,
    data: {
      collection_id: expect.any(String),
      collection_label: 'Personal',
      memory_type: 'user',
      total_queued: 1,
      results: [{ id: expect.any(String), status: 'pending', message: 'Queued.' }],
      document: { name: 'rules.docx', format: 'docx', pages: null, characters: 38, is_ocr: false, warnings: [] },
    },
  });
  expect(status).toBe(202);
  expect([...text]).toHaveLength(38);
  expect(headers['x-credit-charged']).toBe('0.0000038');
  expect(await balance()).toBe(1_000_000_000n - 3_800n);
  const { id } = body.data.results[0];
  const { body: stored } = await fixture.call('GET', `/memory/${id}`, { as: owner });
  expect(stored.data).toMatchObject({ text, title: 'Harbour rules', infer: false, metadata: { customer: 'C-7' } });
  await eventually(async () => {
    const found = await fixture.call('POST', '/memory/search', { as: owner, body: { query: 'harbour' } });
    expect(found.body.data.results).toMatchObject([{ id }]);
  });
  await eventually(async () => expect(await remainingFiles()).toEqual([]));
});

it('the title comes from the form, the document or the file name, in that order', async () => {
  const titleOf = async (parts: readonly FormPart[]) => {
    const { body } = await send(parts);
    return (await fixture.call('GET', `/memory/${body.data.results[0].id}`, { as: owner })).body.data.title;
  };
  const titled = docxOf({ title: 'Own title', body: paragraph('One.') });
  expect(await titleOf([field('title', 'Given'), fileOf(titled)])).toBe('Given');
  expect(await titleOf([fileOf(titled)])).toBe('Own title');
  expect(await titleOf([fileOf(docxOf({ body: paragraph('Two.') }), '../..\\notes\u0007.docx')])).toMatch(
    /notes\.docx$/,
  );
});

it('an unreadable document costs nothing and leaves nothing behind', async () => {
  const refusals: [Buffer | string, string][] = [
    ['', 'DOCUMENT_EMPTY'],
    [Buffer.from('MZ\x90\0\x03\0\0\0', 'latin1'), 'DOCUMENT_UNSUPPORTED'],
    ['PK\x03\x04 is no archive', 'DOCUMENT_NOT_READABLE'],
    [
      Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.from('EncryptedPackage', 'utf16le')]),
      'DOCUMENT_ENCRYPTED',
    ],
    ['a'.repeat(2_000_001), 'DOCUMENT_TOO_LARGE'],
  ];
  for (const [bytes, code] of refusals) {
    const { status, body } = await send([fileOf(bytes)]);
    expect({ status, code: body.code }).toEqual({ status: 422, code });
  }
  expect(await balance()).toBe(1_000_000_000n);
  expect((await fixture.call('GET', '/memory', { as: owner })).body.data.memories).toEqual([]);
  await eventually(async () => expect(await remainingFiles()).toEqual([]));
});

it('an invalid form gets all its errors, and the document stays unread', async () => {
  const { status, body } = await send([
    fileOf('Text.'),
    field('type', 'team'),
    field('infer', 'maybe'),
    field('metadata', '[1]'),
    field('title', 'x'.repeat(501)),
    field('collection_id', 'y'.repeat(65)),
  ]);
  expect(status).toBe(400);
  expect(body.details.map(({ path }: { path: string }) => path)).toEqual([
    'title',
    'type',
    'collection_id',
    'infer',
    'metadata',
  ]);
  const large = await send([fileOf('Text.'), field('metadata', JSON.stringify({ a: 'x'.repeat(8_192) }))]);
  expect(large.body.details).toMatchObject([{ path: 'metadata' }]);
  expect((await send([field('title', 'No file')])).body.details).toEqual([{ path: 'file', message: 'is required' }]);
  expect(reader.reading).toEqual([]);
});

it('a sender without write access is refused and pays nothing', async () => {
  const viewer = await fixture.addMemberWith('viewer', owner.workspaceId);
  reader.reading.length = 0;
  expect((await send([fileOf('Text.')], viewer)).status).toBe(403);
  const member = await fixture.addMemberWith('member', owner.workspaceId);
  expect((await send([fileOf('Text.'), field('type', 'knowledge')], member)).body.code).toBe('POLICY_DENY');
  const elsewhere = [fileOf('Text.'), field('collection_id', 'of-nobody')];
  expect((await send(elsewhere, member)).body.code).toBe('COLLECTION_NOT_FOUND');
  expect((await send([fileOf('Text.')], await fixture.addWorkspace())).body.code).toBe('INSUFFICIENT_CREDITS');
  expect(reader.reading).toEqual([]);
  expect(await balance()).toBe(1_000_000_000n);
});

it('a document that costs nothing is stored although the wallet is overdrawn', async () => {
  const { sql, now } = fixture;
  const debtor = await fixture.addWorkspace();
  const { workspaceId } = debtor;
  await fund(fixture, debtor, 1_000n);
  await overdraw(fixture, debtor);
  await setPrice(sql, { scope: { workspaceId }, item: 'memory', value: 0n, now: now.current });
  expect((await send([fileOf('Text.')], debtor)).body.data).toMatchObject({ total_queued: 1 });
});

it('file names lose their bidirectional control characters', async () => {
  const { body } = await send([fileOf('Text.', 'pass\u202efdp.exe\u2066.txt')]);
  expect(body.data.document.name).toBe('passfdp.exe.txt');
  const { body: stored } = await fixture.call('GET', `/memory/${body.data.results[0].id}`, { as: owner });
  expect(stored.data.title).toBe('passfdp.exe.txt');
});

it('the same document is stored once', async () => {
  await send([fileOf('The same text.', 'a.txt')]);
  const { body, headers } = await send([fileOf('The same text.', 'a.txt')]);
  expect(body.data.results[0].deduplicated_into).toBe(body.data.results[0].id);
  expect(body.data.document.characters).toBe(14);
  expect(headers['x-credit-charged']).toBeUndefined();
});

it('at most two documents per user are read at a time, and disconnecting ends a reading', async () => {
  if (!fixture.app.server.listening) await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = fixture.app.server.address() as AddressInfo;
  reader.isHeld = true;
  const { body, headers } = formOf([fileOf('Held.')]);
  const clients = [0, 1].map(() => {
    const client = httpRequest({
      ...{ port, host: '127.0.0.1', path: URL_PATH, method: 'POST' },
      headers: { ...headers, authorization: `Bearer ${owner.key}`, 'content-length': body.length },
    });
    client.on('error', () => undefined);
    client.end(body);
    return client;
  });
  // The second waits for the single lane.
  await eventually(async () => {
    expect(reader.reading).toHaveLength(1);
    expect(await remainingFiles()).toHaveLength(2);
  });
  const third = await send([fileOf('Third.')]);
  expect({ status: third.status, code: third.body.code }).toEqual({ status: 429, code: 'DOCUMENT_CONCURRENCY_LIMIT' });
  expect(third.headers['retry-after']).toBeDefined();
  for (const client of clients) client.destroy();
  await eventually(async () => expect(await remainingFiles()).toEqual([]));
  // The second may already have the lane.
  expect(new Set(reader.cancelled)).toEqual(new Set(['CLIENT_CANCELLED']));
  reader.isHeld = false;
  await eventually(async () => expect((await send([fileOf('Fourth.', 'd.txt')])).status).toBe(202));
  expect((await fixture.call('GET', '/memory', { as: owner })).body.data.memories).toHaveLength(1);
});

it('cancels the reading, free of charge, when the API key is deleted or the role lowered meanwhile', async () => {
  reader.isHeld = true;
  const { workspaceId } = owner;
  for (const [method, path, body] of [
    ['DELETE', ({ keyId }) => `/developer/api/${keyId}`, undefined],
    ['PATCH', ({ userId }) => `/workspaces/${workspaceId}/members/${userId}`, { role: 'viewer' }],
  ] as const satisfies [string, (leaver: Member) => string, unknown][]) {
    const leaver = await fixture.addMemberWith('member', workspaceId);
    reader.reading.length = 0;
    const answer = send([fileOf('Text.', 'a.txt')], leaver);
    await eventually(() => expect(reader.reading).toHaveLength(1));
    expect((await fixture.call(method, path(leaver), { as: owner, body })).status).toBe(200);
    const { status, body: refused } = await answer;
    expect([status, refused.code]).toEqual([401, 'UNAUTHORIZED']);
  }
  expect(await balance()).toBe(1_000_000_000n);
  expect(await remainingFiles()).toEqual([]);
});
