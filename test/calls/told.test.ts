import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiClient, type CallEvent } from '../../bin/cli/api-client.ts';
import { FOREIGN_LIKENESS, likenessOf, SAME_LIKENESS } from '../../bin/demo/likeness.ts';
import { spokenByPlatform } from '../../bin/demo/spoken-by-platform.ts';
import { toneLevelDbov } from '../../media/dsp/goertzel.ts';
import { walletOf } from '../../storage/ledger.ts';
import { listUsage } from '../../storage/queries/usage.ts';
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

describe('a call whose agent is told something', () => {
  for (const codec of ['PCMU', 'PCMA'] as const) {
    it(`says it to the agent alone, before the customer rings and as they begin to talk, over ${codec}`, async () => {
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
      const atAgent = agent.heard().pcm;
      for (const said of [announced, whispered]) {
        expect(likenessOf(atAgent, said)).toBeGreaterThan(SAME_LIKENESS);
        expect(likenessOf(customer.heard().pcm, said)).toBeLessThan(FOREIGN_LIKENESS);
      }
      expect(agent.heard().continuity.lost).toBe(0);
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

async function usage() {
  const { rows } = await listUsage(
    platform.sql,
    { workspaceId: platform.tandem.workspaceId, service: 'tts' },
    { page: 1, limit: 100 },
  );
  return rows;
}
