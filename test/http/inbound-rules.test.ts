import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readInboundAnswer } from '../../http/schemas/inbound-rule.ts';
import { TandemError } from '../../machines/errors.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';

const NUMBER = '+912240000077';
const PATH = `/dialer/numbers/${encodeURIComponent(NUMBER)}/inbound`;
const FORWARD = { action: 'forward', endpoint: { type: 'phone', number: '98123 45678' } };

let fixture: HttpFixture;
let writer: Member;
let reader: Member;
let stranger: Member;

beforeAll(async () => {
  fixture = await createHttpFixture();
  const { workspace } = await seedWorkspace(fixture.sql, { balanceNano: 10_000_000_000n });
  writer = await fixture.addMemberWith('developer', workspace.id);
  reader = await fixture.addMemberWith('viewer', workspace.id);
  stranger = await fixture.addMemberWith('owner', (await seedWorkspace(fixture.sql)).workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id, numbers: [NUMBER] });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const put = (body: unknown, as = writer) => fixture.call('PUT' as 'POST', PATH, { as, body });

describe('inbound rule of a number', () => {
  it('applies defaults, appears with the number, and goes to the audit log', async () => {
    const { status, body } = await put(FORWARD);
    const rule = {
      action: 'forward',
      endpoint: { type: 'phone', number: '+919812345678' },
      ring_timeout: 30,
      max_duration: 3600,
      record: false,
      transcribe: false,
      announce: null,
      voice_id: null,
    };
    expect({ status, inbound: body.data.inbound }).toEqual({ status: 200, inbound: rule });
    const { body: listed } = await fixture.call('GET', '/dialer/numbers', { as: reader });
    expect(listed.data.numbers).toMatchObject([{ e164: NUMBER, inbound: rule }]);
    const [entry] = await fixture.sql`select details from audit_log where action = 'number.inbound_changed'`;
    expect(entry!.details).toEqual({ action: 'forward' });
  });

  it('accepts a browser, options and a rejecting rule', async () => {
    const options = { ring_timeout: 20, max_duration: 600, record: true, transcribe: true, announce: 'Sales.' };
    const { body } = await put({ action: 'forward', endpoint: { type: 'webrtc', user_id: writer.userId }, ...options });
    expect(body.data.inbound).toMatchObject({ endpoint: { type: 'webrtc', user_id: writer.userId }, ...options });
    expect((await put({ action: 'reject' })).body.data.inbound).toEqual({ action: 'reject' });
  });

  it('accepts a URL with a secret, stores the secret encrypted and returns its last characters', async () => {
    const secret = 'a secret of the integrator 4711';
    const { status, body } = await put({ action: 'ask', url: 'https://example.com/in', secret, fallback: FORWARD });
    expect(status).toBe(200);
    expect(body.data.inbound).toMatchObject({
      action: 'ask',
      url: 'https://example.com/in',
      secret_last4: '4711',
      fallback: { action: 'forward', endpoint: { type: 'phone', number: '+919812345678' }, ring_timeout: 30 },
    });
    const [stored] = await fixture.sql`select inbound::text as inbound from numbers where e164 = ${NUMBER}`;
    expect(stored!.inbound).not.toContain(secret);
    const asked = await put({ action: 'ask', url: 'https://example.com/in', secret });
    expect(asked.body.data.inbound.fallback).toEqual({ action: 'reject' });
  });

  it('counts the last characters of a secret in whole code points', async () => {
    const secret = 'a secret with faces \u{1F600}\u{1F601}!';
    const { status, body } = await put({ action: 'ask', url: 'https://example.com/in', secret });
    expect([status, body.data?.inbound.secret_last4]).toEqual([200, ' \u{1F600}\u{1F601}!']);
  });

  it('accepts the endpoint as `to`, also in a fallback and in the answer of a URL', async () => {
    const forward = { action: 'forward', to: { type: 'phone', number: '98123 45678' } };
    const endpoint = { type: 'phone', number: '+919812345678' };
    expect((await put(forward)).body).toMatchObject({ data: { inbound: { action: 'forward', endpoint } } });
    const asked = { action: 'ask', url: 'https://example.com/in', secret: 'sixteen characters', fallback: forward };
    expect((await put(asked)).body).toMatchObject({ data: { inbound: { fallback: { action: 'forward', endpoint } } } });
    expect(readInboundAnswer(forward, ['IN'])).toMatchObject({ action: 'forward', endpoint });
    const wrong = await put({ ...forward, to: { type: 'phone', number: '12' } });
    expect(wrong.body.details).toMatchObject([{ path: 'to.number' }]);
  });

  it('accepts a callback for forwarded calls', async () => {
    const callbacks = { callback_url: 'https://example.com/done', callback_secret: 'sixteen characters' };
    const { body } = await put({ ...FORWARD, ...callbacks });
    expect(body.data.inbound).toMatchObject({ action: 'forward', callback_url: 'https://example.com/done' });
    expect(JSON.stringify(body)).not.toContain('sixteen');
  });

  it('rejects a URL that callbacks must not reach', async () => {
    fixture.dialer.onCheckUrl = () => {
      throw new TandemError('INVALID_CALLBACK_URL', 'url must be an https URL.');
    };
    const { status, body } = await put({ action: 'ask', url: 'http://10.0.0.1/', secret: 'sixteen characters' });
    expect([status, body.code]).toEqual([400, 'INVALID_CALLBACK_URL']);
  });

  it.each([
    { ...FORWARD, announce: 'Call <br/>', voice_id: 'voice_1' },
    {
      action: 'ask',
      url: 'https://example.com/in',
      secret: 'sixteen characters',
      fallback: { ...FORWARD, announce: 'Call <br/>', voice_id: 'voice_1' },
    },
  ])('rejects an announcement that a placed call could not have', async (body) => {
    const checked: unknown[] = [];
    fixture.dialer.onCheckSpeech = (speech) => {
      checked.push(speech);
      throw new TandemError('INVALID_ANNOUNCE', 'announce: Line 1: the element <br> is not supported.');
    };
    const refused = await put(body);
    fixture.dialer.onCheckSpeech = () => undefined;
    expect([refused.status, refused.body.code]).toEqual([400, 'INVALID_ANNOUNCE']);
    const { workspaceId } = writer;
    expect(checked).toEqual([{ workspaceId, announce: 'Call <br/>', whisper: null, voiceId: 'voice_1' }]);
  });

  it.each([
    [{ action: 'ask' }],
    [{ action: 'ask', url: 'https://example.com/in' }],
    [{ action: 'ask', url: 'https://example.com/in', secret: 'short' }],
    [{ action: 'ask', url: 'https://example.com/in', secret: 'sixteen characters', record: true }],
    [{ action: 'ask', url: 'https://example.com/in', secret: 'sixteen characters', fallback: { action: 'ask' } }],
    [{ action: 'ask', url: 'https://example.com/in', secret: 'sixteen characters', fallback: { action: 'forward' } }],
    [{ ...FORWARD, url: 'https://example.com/in' }],
    [{ ...FORWARD, callback_url: 'https://example.com/done' }],
    [{ ...FORWARD, callback_secret: 'sixteen characters' }],
    [{}],
    [{ action: 'forward' }],
    [{ action: 'reject', record: true }],
    [{ action: 'reject', to: FORWARD.endpoint }],
    [{ ...FORWARD, to: FORWARD.endpoint }],
    [{ ...FORWARD, endpoint: { type: 'phone', number: '12' } }],
    [{ ...FORWARD, ring_timeout: 4 }],
    [{ ...FORWARD, max_duration: 1e9 }],
    [{ ...FORWARD, announce: '' }],
    [{ ...FORWARD, surprise: 1 }],
  ])('answers 400 to %j', async (body) => {
    expect((await put(body)).status).toBe(400);
  });

  it('requires a writer of the workspace that rents the number', async () => {
    expect((await put(FORWARD, reader)).status).toBe(403);
    expect((await put(FORWARD, stranger)).body.code).toBe('NUMBER_NOT_FOUND');
    const malformed = await fixture.call('PUT' as 'POST', '/dialer/numbers/none/inbound', {
      as: writer,
      body: FORWARD,
    });
    expect(malformed.body.code).toBe('NUMBER_NOT_FOUND');
  });
});
