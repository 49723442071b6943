import { expect, it } from 'vitest';
import { createLogger } from '../../logging.ts';
import { TandemError } from '../../machines/errors.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture } from './fixture.ts';
import { finish, seedCall, seedRecordedCall } from './seed-calls.ts';

const AGENT = '9876543210';
const CUSTOMER = '9876501234';
const SECRET = 'callback-secret-of-many-letters';

it('numbers, keys, secrets and signatures never reach the log, whatever fails', async () => {
  await using fixture = await createHttpFixture();
  const { workspace } = await seedWorkspace(fixture.sql);
  const member = await fixture.addMemberWith('owner', workspace.id);
  const as = { as: member };
  await seedTrunk(fixture.sql, { workspaceId: workspace.id, numbers: ['+912240000001', `+91${AGENT}`] });
  const { call } = await seedRecordedCall(fixture, { by: member, bytes: Buffer.from('RIFF') });
  const minted = await fixture.call('POST', `/dialer/click2call/${call.callId}/recording`, as);
  const playbackPath = minted.body.data.recording.playback_url.replace('http://voice.test', '');
  const placement = {
    agent_number: AGENT,
    customer_number: CUSTOMER,
    callback_url: `https://crm.example/${CUSTOMER}`,
    callback_secret: SECRET,
    metadata: { phone: CUSTOMER },
  };
  const place = (body: unknown) => fixture.call('POST', '/dialer/click2call', { ...as, body });

  await place(placement);
  await place({ ...placement, metadata: `${CUSTOMER}\0` });
  fixture.dialer.onPlace = () => Promise.reject(new Error(`no route to ${CUSTOMER} with ${SECRET}`));
  expect((await place(placement)).status).toBe(500);
  fixture.dialer.onPlace = () =>
    Promise.reject(new TandemError('C2C_OUTCOME_UNKNOWN', `${CUSTOMER}`, { cause: new Error(CUSTOMER) }));
  expect((await place(placement)).status).toBe(504);
  await fixture.call('GET', `/dialer/click2call?agent_number=${AGENT}`, as);
  await fixture.call('POST', '/dialer/numbers', { ...as, body: { e164: `+91${AGENT}` } });
  await fixture.call('DELETE', `/dialer/numbers/%2B91${AGENT}`, as);
  await fixture.call('GET', `/nowhere/${AGENT}`, as);
  await fixture.call('GET', `/dialer/click2call/${AGENT}`, {
    as: null,
    headers: { authorization: `Bearer sk_${SECRET}` },
  });
  await fixture.call('GET', playbackPath, { as: null });
  const live = await seedCall(fixture, { by: member, referenceId: AGENT });
  await finish(fixture, live.callId);
  await fixture.call('GET', `/dialer/click2call/${AGENT}/stream`, as);
  await fixture.call('POST', '/dialer/trunks', { ...as, body: { name: AGENT, sip_uri: 'sip:a', password: SECRET } });
  await fixture.sql.end({ timeout: 0 });
  expect((await fixture.call('GET', `/dialer/click2call?agent_number=${AGENT}`, as)).status).toBe(503);

  const log = fixture.logLines.join('');
  expect(fixture.logLines.length).toBeGreaterThanOrEqual(13);
  expect(log).toContain('request completed');
  expect(log).toContain('request failed');
  expect(log).toContain('/dialer/click2call/:id/stream');
  const signature = new URL(playbackPath, 'http://voice.test').searchParams.get('signature')!;
  for (const hidden of [AGENT, CUSTOMER, SECRET, member.key, member.key.slice(3, 20), signature]) {
    expect(log).not.toContain(hidden);
  }
});

it('the logger removes personal data and masks credentials at any depth', () => {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  logger.info({ pii: { number: AGENT }, callId: 'c1' }, 'a call');
  logger.child({ pii: { number: AGENT } }).info('a child');
  logger.info({ headers: { authorization: `Bearer ${SECRET}` }, trunk: { password: SECRET } }, 'credentials');
  logger.info({ request: { headers: { authorization: SECRET } }, token: SECRET, callback_secret: SECRET }, 'more');
  logger.info({ list: [{ a: { b: { c: { token: SECRET, pii: AGENT } } } }] }, 'deep');
  logger.child({ request: { headers: { cookie: SECRET } } }).info('a child with credentials');
  const headers = { 'Set-Cookie': SECRET, 'x-api-key': SECRET, Cookie: SECRET, 'Proxy-Authorization': SECRET };
  logger.info({ headers, shown: { toJSON: () => ({ token: SECRET, kept: 1 }) }, at: new Date(0) }, 'other forms');
  const circle: Record<string, unknown> = { password: SECRET };
  circle.self = circle;
  logger.info(circle, 'a circle');
  logger.error({ err: new Error(`duplicate key (${AGENT})`, { cause: new TypeError(SECRET) }) }, 'an error');
  const log = lines.join('');
  expect(lines).toHaveLength(9);
  expect(log).not.toContain(AGENT);
  expect(log).not.toContain(SECRET);
  expect(circle.password).toBe(SECRET);
  expect(JSON.parse(lines[0]!)).toMatchObject({ level: 'info', callId: 'c1', msg: 'a call' });
  expect(JSON.parse(lines.at(-1)!).err).toMatchObject({ type: 'Error', cause: { type: 'TypeError' } });
  expect(JSON.parse(lines.at(-1)!).err.stack.length).toBeGreaterThan(0);
});

it('the logger removes the details of an error in any field', () => {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  const failure = new TandemError('VALIDATION_FAILED', AGENT, { details: { number: AGENT } });
  logger.warn({ reason: failure, outcomes: [{ status: 'rejected', reason: failure }] }, 'nested errors');
  logger.child({ reason: failure }).warn({}, 'an error of a child');
  expect(lines.join('')).not.toContain(AGENT);
  expect(JSON.parse(lines[0]!)).toMatchObject({
    reason: { code: 'VALIDATION_FAILED' },
    outcomes: [{ reason: { code: 'VALIDATION_FAILED' } }],
  });
});

it('the logger accepts an error that is its own cause', () => {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  const error = new Error('first');
  error.cause = new Error('second', { cause: error });
  logger.error({ err: error }, 'a circle');
  expect(JSON.parse(lines[0]!).err.cause.cause.type).toBe('Error');
});
