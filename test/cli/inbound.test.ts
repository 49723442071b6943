import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { topUp } from '../../storage/ledger.ts';
import { eventually } from '../eventually.ts';
import { createHttpFixture, type HttpFixture } from '../http/fixture.ts';
import { seedTrunk, USD } from '../storage/seed.ts';
import { tandem, tandemProcess } from './command-line.ts';

const NUMBER = '+912240000077';

let fixture: HttpFixture;
let env: Record<string, string>;
beforeAll(async () => {
  fixture = await createHttpFixture();
  const url = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  env = { TANDEM_URL: url, TANDEM_API_KEY: fixture.owner.key };
  await seedTrunk(fixture.sql, { workspaceId: fixture.owner.workspaceId, numbers: [NUMBER] });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const run = (argv: string[]) => tandem(['numbers', ...argv], { env });

describe('tandem numbers inbound', () => {
  it('forwards calls to a phone, and appears in `numbers list`', async () => {
    const set = await run(['inbound', NUMBER, '--forward', '98123 45678', '--record']);
    const rule = 'forwarded to +919812345678, recorded';
    expect(set).toMatchObject({ exitCode: 0, stdout: `Calls to ${NUMBER}: ${rule}.\n` });
    expect((await run(['list'])).stdout).toContain(`${NUMBER}  ${rule}`);
  });

  it('lets a URL decide, with a secret from standard input', async () => {
    const argv = ['inbound', NUMBER, '--ask', 'https://example.com/in', '--secret-stdin', '--browser', '7', '--json'];
    const { document } = await tandemProcess(['numbers', ...argv], { env, stdin: 'sixteen characters\n' });
    const { number } = document.data as { number: { inbound: object } };
    expect(number.inbound).toMatchObject({
      action: 'ask',
      url: 'https://example.com/in',
      secret_last4: 'ters',
      fallback: { action: 'forward', endpoint: { type: 'webrtc', user_id: 7 } },
    });
  });

  it.each([
    { argv: [] },
    { argv: ['--reject', '--forward', '+919812345678'] },
    { argv: ['--forward', '+919812345678', '--browser', '7'] },
    { argv: ['--ask', 'https://example.com/in'] },
    { argv: ['--reject', '--record'] },
    { argv: ['--reject', '--secret-stdin'] },
    { argv: ['--ask', 'https://example.com/in', '--secret-stdin', '--announce', 'Hello'] },
  ])('rejects $argv', async ({ argv }) => {
    expect((await run(['inbound', NUMBER, ...argv])).exitCode).toBe(2);
  });
});

describe('tandem numbers prove', () => {
  async function claimed(number: string) {
    const member = await fixture.addWorkspace();
    const body = { name: 'PBX', sip_uri: 'sip:pbx.example', numbers: [number] };
    const { body: trunk } = await fixture.call('POST', '/dialer/trunks', { as: member, body });
    await topUp(fixture.sql, {
      ...{ workspaceId: member.workspaceId, amountNano: USD, paymentType: 'admin_bonus', operationKey: number },
      at: fixture.now.current,
    });
    const argv = ['numbers', 'prove', number, '--trunk', trunk.data.id];
    return tandem(argv, { env: { ...env, TANDEM_API_KEY: member.key } });
  }

  it('prints why a number was not verified, and the remedy', async () => {
    const running = claimed('+912249500001');
    const leg = await eventually(() => {
      expect(fixture.sip.legs).toHaveLength(1);
      return fixture.sip.legs[0]!;
    });
    leg.emit({ type: 'leg.refused', sipStatus: 404, hangupCause: 'UNALLOCATED_NUMBER', detail: 'Not Found' });
    expect(await running).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('was not verified: the call was refused. Point the number at this server'),
    });
  });

  it('requires the trunk', async () => {
    expect(await run(['prove', NUMBER])).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--trunk ID') });
  });
});
