import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../eventually.ts';
import { type Platform, startPlatform } from './platform.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform[Symbol.asyncDispose]());

interface Sampled {
  leg_id: string;
  role: string;
  samples: { packets_received: number; packets_lost: number; jitter_ms: number; mos: number | null }[];
}

interface Health {
  checks: { name: string; status: string; action: string | null }[];
  nodes: unknown[];
  media: { workers: unknown[] };
  engines: { kind: string }[];
  queues: { name: string }[];
  versions: { tandem: string };
}

describe('call between two softphones', () => {
  it('stores quality samples that add up to the quality of the whole call', async () => {
    const { agent, customer } = await platform.parties();
    const placed = await platform.place();
    await platform.until(placed.call_id, 'call.bridged');
    await agent.untilReceived(({ packets }) => packets > 60);
    await customer.untilReceived(({ packets }) => packets > 60);
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);
    await platform.ended(placed.call_id);
    const { quality } = await platform.call(placed.call_id);
    await eventually(async () => {
      const path = `/dialer/click2call/${placed.call_id}/quality`;
      const { legs } = (await platform.ask<{ legs: Sampled[] }>('GET', path)).body.data;
      expect(legs.map(({ leg_id, role }) => [leg_id, role])).toEqual([
        ['agent', 'agent'],
        ['customer', 'customer'],
      ]);
      for (const { role, samples } of legs) {
        const received = samples.reduce((sum, sample) => sum + sample.packets_received, 0);
        const total = quality?.[role as 'agent']?.packets_received ?? 0;
        // Packets may arrive after the last sample.
        expect(received).toBeGreaterThan(50);
        expect(received).toBeLessThanOrEqual(total);
        expect(samples.at(-1)?.mos).toBeGreaterThan(1);
      }
    });
  });
});

describe('GET /system/health of a running server', () => {
  it("returns the doctor's checks, this node and its media workers", async () => {
    const { status, body } = await platform.ask<Health>('GET', '/system/health');
    expect(status).toBe(200);
    const { data } = body;
    const names = data.checks.map(({ name }) => name);
    const expected = [
      'sip_server',
      'runtime',
      'disk',
      'objects',
      'schema',
      'clock',
      'transcription',
      'speech synthesis',
    ];
    expect(names).toEqual(expect.arrayContaining(expected));
    expect(data.checks.filter((check) => check.status === 'failed')).toEqual([]);
    for (const check of data.checks) expect(check.status === 'ok', check.name).toBe(check.action === null);
    expect(data.nodes).toMatchObject([{ is_this: true, state: 'running', version: data.versions.tandem }]);
    expect(data.media.workers.length).toBeGreaterThan(0);
    expect(data.engines.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['stt', 'tts']));
    expect(data.queues.map(({ name }) => name)).toContain('deliveries');
  });
});
