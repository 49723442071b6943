import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { untilNotPlayed, untilPlayed } from '../browser/page-tones.ts';
import { writeTone } from '../browser/phone-page.ts';
import { clean, fund, peersOf } from '../process/ready-server.ts';
import { type ConsoleFixture, startConsole } from './console-fixture.ts';

/** Tones of the browser's microphone and of the phones. */
export const MICROPHONE_HZ = 1000;
export const COLLEAGUE_HZ = 440;
export const CUSTOMER_HZ = 660;

export interface PhoneTown extends ConsoleFixture, Awaited<ReturnType<typeof peersOf>> {
  /** Rings the browser of the owner, and then the customer. */
  ringBrowser(): Promise<string>;
  post(callId: string, path: string, body?: unknown): Promise<unknown>;
  /** Names of the events of a call so far. */
  eventsOf(callId: string): Promise<string[]>;
}

/** A console whose browser has a microphone, a colleague and a customer at SIP phones. */
export async function startPhoneTown(): Promise<PhoneTown> {
  const folder = await mkdtemp(join(tmpdir(), 'tandem-phone-'));
  clean.push(() => rm(folder, { recursive: true }));
  const microphone = join(folder, 'microphone.wav');
  await writeTone(microphone, MICROPHONE_HZ);
  const ready = await startConsole({ WEBRTC_PORT: '0', PLACEMENTS_PER_MINUTE: '100' }, { microphone });
  const town = await peersOf(ready);
  await fund(ready.sql, ready.workspaceId);
  return {
    ...ready,
    ...town,
    async ringBrowser() {
      const body = { agent_endpoint: { type: 'webrtc' }, customer_number: town.customer.user, agent_ring_timeout: 60 };
      const { call } = await ready.api.post<{ call: { call_id: string } }>('/dialer/click2call', body);
      return call.call_id;
    },
    post: (callId, path, body) => ready.api.post(`/dialer/click2call/${callId}/${path}`, body),
    async eventsOf(callId) {
      const { events } = await ready.api.get<{ events: { event: string }[] }>(`/dialer/click2call/${callId}/events`);
      return events.map(({ event }) => event);
    },
  };
}

/** Opens the phone page and goes available. The browser must not filter the tone of its microphone out as noise. */
export async function goAvailable(page: Page, { url }: { url: string }): Promise<void> {
  await page.goto(`${url}/console/phone`);
  await page.getByRole('switch', { name: 'Reduce noise and echo' }).uncheck({ force: true });
  await page.getByRole('button', { name: 'Go available' }).click();
  await page.getByText('Ready for calls').waitFor();
}

/** Waits until the page plays a tone. */
export async function untilTone(page: Page, frequencyHz: number): Promise<void> {
  await untilPlayed({ page, stream: CALL_AUDIO }, frequencyHz);
}

/** Waits until the page no longer plays a tone. */
export async function untilNoTone(page: Page, frequencyHz: number): Promise<void> {
  await untilNotPlayed({ page, stream: CALL_AUDIO }, frequencyHz);
}

const CALL_AUDIO = "document.querySelector('audio').srcObject";
