import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiClient, type CallEvent } from '../../bin/cli/api-client.ts';
import { FOREIGN_LIKENESS, likenessOf, SAME_LIKENESS } from '../../bin/demo/likeness.ts';
import { spokenByPlatform } from '../../bin/demo/spoken-by-platform.ts';
import { walletOf } from '../../storage/ledger.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { wavFile } from '../media/audio-file/wav-files.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { metricsOf } from './metrics-of.ts';
import { untilLevel } from './next-level.ts';
import { AGENT_HZ, CUSTOMER_HZ, type Platform, startPlatform } from './platform.ts';

const ANNOUNCE = 'Call from the shop.';
const WHISPER = 'She called twice today.';

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform({ env: { TTS_ENGINE: 'espeak-ng' } });
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

describe('call with announcement and whisper', () => {
  for (const codec of ['PCMU', 'PCMA'] as const) {
    it(`plays them to the agent only, before the customer rings and after the bridge, over ${codec}`, async () => {
      const { agent, customer } = await platform.parties({
        agent: { codecs: [codec], audio: { kind: 'tone', frequencyHz: AGENT_HZ } },
        customer: { audio: { kind: 'silence' } },
      });
      const { tandem } = platform;
      const usedBefore = await usage();
      const api = apiClient({ url: tandem.url, apiKey: tandem.mintedApiKey ?? '' });
      const [announced, whispered] = [await spokenByPlatform(api, ANNOUNCE), await spokenByPlatform(api, WHISPER)];
      const synthesised = (await usage()).length - usedBefore.length;
      const { call_id: callId } = await platform.place({ announce: ANNOUNCE, whisper: WHISPER, record: true });
      await platform.until(callId, 'whisper.finished');
      expect((await metricsOf(platform)).value('tandem_tts_first_byte_seconds_count')).toBeGreaterThanOrEqual(4);
      agent.hangup();
      const events = await platform.ended(callId);
      expect(events.map(({ event }: CallEvent) => event)).toEqual([
        'call.pending',
        'call.initiated',
        'agent.ringing',
        'agent.answered',
        'announcement.started',
        'announcement.finished',
        'customer.dialing',
        'customer.ringing',
        'call.bridged',
        ...events.slice(9, -1).map(({ event }) => event),
        'call.completed',
      ]);
      const atAgent = agent.received().pcm;
      for (const said of [announced, whispered]) {
        expect(likenessOf(atAgent, said)).toBeGreaterThan(SAME_LIKENESS);
        expect(likenessOf(customer.received().pcm, said)).toBeLessThan(FOREIGN_LIKENESS);
      }
      expect(agent.received().continuity.lost).toBe(0);
      const recording = await platform.recordingOf(callId);
      for (const channel of [recording.left, recording.right]) {
        expect(likenessOf(channel, whispered)).toBeLessThan(FOREIGN_LIKENESS);
      }
      expect(toneLevelDbov(recording.left, AGENT_HZ)).toBeGreaterThan(-20);
      expect(toneLevelDbov(recording.right, CUSTOMER_HZ)).toBeLessThan(-50);

      const rows = (await usage()).filter(({ resourceId }) => resourceId === callId);
      expect(rows.map(({ operation, quantity }) => [operation, Number(quantity)]).sort()).toEqual([
        ['announce', ANNOUNCE.length],
        ['whisper', WHISPER.length],
      ]);
      expect((await usage()).length - usedBefore.length).toBe(synthesised + 2);
      const call = await platform.call(callId);
      expect(call.speech_cost_usd).toBeCloseTo((ANNOUNCE.length + WHISPER.length) * 0.000_015, 9);
      expect(await walletOf(platform.sql, tandem.workspaceId)).toMatchObject({ heldNano: 0n });
    });
  }
});

describe('playback into a live call', () => {
  it('plays a text to both parties, and a looped file to one until stopped', async () => {
    const { agent, customer } = await platform.parties({
      agent: { audio: { kind: 'silence' } },
      customer: { audio: { kind: 'silence' } },
    });
    const api = apiClient({ url: platform.tandem.url, apiKey: platform.tandem.mintedApiKey ?? '' });
    const said = await spokenByPlatform(api, WHISPER);
    const { call_id: callId } = await platform.place({ record: true });
    await platform.until(callId, 'call.bridged');
    const path = `/dialer/click2call/${callId}/play`;
    const text = await platform.ask('POST', path, { leg: 'both', text: WHISPER });
    expect(text.status).toBe(201);
    await platform.until(callId, 'playback.finished');
    for (const phone of [agent, customer]) {
      expect(likenessOf(phone.received().pcm, said)).toBeGreaterThan(SAME_LIKENESS);
    }
    const loop = await platform.ask('POST', path, { leg: 'customer', url: await audioFile(), loop: true });
    expect(loop.status).toBe(201);
    // Longer than the file.
    const { packets } = customer.received();
    await customer.untilReceived((received) => received.packets > packets + 75);
    expect(toneLevelDbov(customer.received().pcm.subarray(-6_000), FILE_HZ)).toBeGreaterThan(-20);
    expect(toneLevelDbov(agent.received().pcm.subarray(-2_000), FILE_HZ)).toBeLessThan(-50);
    const playbackId = String(loop.body.data.playback_id);
    expect((await platform.ask('DELETE', `${path}/${playbackId}`)).status).toBe(200);
    expect((await platform.ask('DELETE', `${path}/${playbackId}`)).status).toBe(404);
    await untilLevel(customer, FILE_HZ, { below: -50 });
    agent.hangup();
    const events = await platform.ended(callId);
    expect(events.filter(({ event }) => event.startsWith('playback.')).map(({ data }) => data)).toEqual([
      { playback_id: expect.any(String), legs: ['agent', 'customer'], characters: WHISPER.length },
      { playback_id: expect.any(String), reason: 'played' },
      { playback_id: playbackId, legs: ['customer'] },
      { playback_id: playbackId, reason: 'stopped' },
    ]);
    const recording = await platform.recordingOf(callId);
    expect(likenessOf(recording.left, said)).toBeLessThan(FOREIGN_LIKENESS);
    expect((await platform.call(callId)).speech_cost_usd).toBeCloseTo(WHISPER.length * 0.000_015, 9);
  });
});

const FILE_HZ = 1_750;

/** URL of half a second of a tone. */
async function audioFile(): Promise<string> {
  const samples = Int16Array.from({ length: 8_000 }, (_, i) => 9_000 * Math.sin((2 * Math.PI * FILE_HZ * i) / 16_000));
  const server = createServer((_, response) => response.end(wavFile(samples)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/tone.wav`;
}

async function usage() {
  const { rows } = await listUsage(
    platform.sql,
    { workspaceId: platform.tandem.workspaceId, service: 'tts' },
    { page: 1, limit: 100 },
  );
  return rows;
}
