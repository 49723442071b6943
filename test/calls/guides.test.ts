import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NUMBERS } from '../../bin/demo/town.ts';
import { parseWav } from '../../media/wav.ts';
import { followGuide, type GuidePath } from '../guide-path.ts';
import { AGENT, CUSTOMER, type Platform, startPlatform } from './platform.ts';

/** One server for all guides, with the phones, the trunk, the money and the finished call that the demo provides. */
let platform: Platform;
beforeAll(async () => {
  // One engine process each, because the guides speak one at a time.
  platform = await startPlatform({ env: { STT_PROCESSES: '1', TTS_PROCESSES: '1', MEDIA_WORKERS: '1' } });
  await platform.parties();
  expect(NUMBERS).toEqual({ agent: AGENT, customer: CUSTOMER });
  const { call_id } = await platform.place();
  await platform.ask('POST', `/dialer/click2call/${call_id}/hangup`);
  await platform.ended(call_id);
});
afterAll(async () => await platform[Symbol.asyncDispose]());

describe('ten-minute paths of the guides', () => {
  it('the telephony guide places, controls, verifies and records a call', async () => {
    await using path = await follow('guide-telephony', 'npm run demo -- --keep');
    const [, placed, recorded] = path.steps;
    expect(placed).toContain('"state":"initiated"');
    expect(
      placed!.match(/^(?:initiated|bridged|completed) [a-z]+\.[a-z]+/gm)?.map((line) => line.split(' ')[1]),
    ).toEqual(
      expect.arrayContaining([
        'agent.answered',
        'call.bridged',
        'playback.finished',
        'call.held',
        'call.resumed',
        'call.completed',
      ]),
    );
    expect(placed).toMatch(/^verified: call\.completed of order-\d+, [1-9]\d* s of talk$/m);
    expect(recorded).toBe('');
    const { samples, durationMs } = parseWav(await readFile(join(path.folder, 'call.wav')));
    expect(samples).toHaveLength(2);
    expect(durationMs).toBeGreaterThan(1_000);
  });

  it('the live transcription guide gets the text of mu-law audio, and the bill', async () => {
    await using path = await follow('guide-live-transcription', 'npm start');
    const [, toppedUp, transcribed] = path.steps;
    expect(toppedUp).toMatch(/^5\.00 USD added/);
    expect(transcribed).toMatch(/^final, \d+ ms after the speech: go forward \w+/m);
    expect(transcribed).toMatch(/^[\d.]+ s, 0\.0\d+ USD$/m);
  });

  it('the API client guide queries, speaks, remembers, corrects and reports costs; chat and judge answer 503', async () => {
    await using path = await follow('guide-api-client', 'npm run demo -- --keep');
    const [, lookedUp, spoken, remembered, corrected, chatted, judged, billed] = path.steps;
    const [call, events, transcript] = jsonIn(lookedUp!);
    expect(call.call.state).toMatch(/^(?:completed|rejected|failed)$/);
    expect(events.events.at(-1).event).toMatch(/^call\./);
    expect(transcript).toMatchObject({ call_id: call.call.call_id, segments: [] });
    expect(spoken).toBe('');
    expect(parseWav(await readFile(join(path.folder, 'speech.wav'))).durationMs).toBeGreaterThan(1_000);
    const [ingested, found] = jsonIn(remembered!);
    expect(found.results[0].id).toBe(ingested.results[0].id);
    expect(JSON.parse(corrected!).choices[0].message.content).toBe("We don't ship on Monday, it's a holiday.");
    for (const refused of [chatted, judged]) {
      expect(refused).toContain('"code":"LLM_NOT_CONFIGURED"');
      expect(refused).toMatch(/} 503\n$/);
    }
    const [wallet, usage] = jsonIn(billed!);
    expect(wallet.available).toBeGreaterThan(0);
    expect(usage.groups.map(({ key }: { key: string }) => key)).toEqual(expect.arrayContaining(['memory', 'tts']));
  });
});

async function follow(page: string, start: string): Promise<GuidePath> {
  const { url, mintedApiKey, databaseUrl } = platform.tandem;
  const server = { url, apiKey: mintedApiKey!, env: { DATABASE_URL: databaseUrl } };
  return await followGuide(page, { start, server });
}

/** The `data` of responses, one on each line. */
// biome-ignore lint/suspicious/noExplicitAny: responses of several operations.
function jsonIn(output: string): any[] {
  return output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).data);
}
