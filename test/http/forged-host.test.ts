import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { wavHeader } from '../../media/wav.ts';
import { topUp } from '../../storage/ledger.ts';
import { seedTrunk, USD } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture } from './fixture.ts';
import { seedRecordedCall } from './seed-calls.ts';

const FORGED = 'attacker.example';

async function openFixture(options: Parameters<typeof createHttpFixture>[0]) {
  const fixture = await createHttpFixture(options);
  const { workspaceId } = fixture.owner;
  await topUp(fixture.sql, { workspaceId, amountNano: 10n * USD, paymentType: 'admin_bonus', operationKey: 'seed' });
  await seedTrunk(fixture.sql, { workspaceId });
  const bytes = wavHeader({ channels: 2, sampleRateHz: 8000 }, 0);
  const { recordingId } = await seedRecordedCall(fixture, { by: fixture.owner, bytes });
  const path = `/dialer/recordings/${recordingId}/playback-url`;
  const authorization = `Bearer ${fixture.owner.key}`;
  return {
    fixture,
    path,
    authorization,
    async originFor({ remoteAddress, ...headers }: { remoteAddress: string; [header: string]: string }) {
      const answer = await fixture.app.inject({
        ...{ method: 'POST', url: path, remoteAddress, headers: { authorization, host: FORGED, ...headers } },
      });
      const { playback_url } = answer.json().data;
      return new URL(playback_url).origin;
    },
  };
}

describe('signed URL without TANDEM_PUBLIC_URL', () => {
  let opened: Awaited<ReturnType<typeof openFixture>>;
  beforeAll(async () => {
    opened = await openFixture({ publicUrl: null, trustedProxies: ['10.0.0.0/8'] });
  });
  afterAll(() => (opened.fixture as HttpFixture)[Symbol.asyncDispose]());

  it('uses the host that a trusted proxy forwards', async () => {
    const proxy = { remoteAddress: '10.1.2.3', host: 'app:8080' };
    expect(await opened.originFor(proxy)).toBe('http://app:8080');
    const forwarded = { 'x-forwarded-host': 'voice.example.com', 'x-forwarded-proto': 'https' };
    expect(await opened.originFor({ ...proxy, ...forwarded })).toBe('https://voice.example.com');
  });

  it('ignores the host that another client forwards', async () => {
    const remoteAddress = '203.0.113.9';
    const forwarded = { 'x-forwarded-host': FORGED, 'x-forwarded-proto': 'https', forwarded: `host=${FORGED}` };
    expect(await opened.originFor({ remoteAddress })).toBe('http://localhost');
    expect(await opened.originFor({ remoteAddress, ...forwarded })).toBe('http://localhost');
  });

  it('uses the address that such a client connects to', async () => {
    const { fixture, path, authorization } = opened;
    await fixture.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = fixture.app.server.address() as AddressInfo;
    const sent = request({ port, path, method: 'POST', headers: { authorization, host: FORGED } }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const { data } = (await json(response)) as { data: { playback_url: string } };
    expect(new URL(data.playback_url).origin).toBe(`http://127.0.0.1:${port}`);
    const played = await fetch(data.playback_url);
    expect([played.status, played.headers.get('content-type')]).toEqual([200, 'audio/wav']);
  });
});

it('a signed URL uses TANDEM_PUBLIC_URL, whatever the Host header', async () => {
  const { fixture, originFor } = await openFixture({ publicUrl: 'https://voice.example.com' });
  await using _ = fixture;
  for (const remoteAddress of ['127.0.0.1', '203.0.113.9']) {
    expect(await originFor({ remoteAddress, 'x-forwarded-host': FORGED })).toBe('https://voice.example.com');
  }
});
