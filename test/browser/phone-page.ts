import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { findWorker } from '../../media/webrtc/worker-binary.ts';
import { CHROMIUM, Chromium } from './chromium.ts';

/** A phone in a browser requires Debian's chromium, and mediasoup's worker from `npm ci`. */
export const hasPhoneBrowser = findWorker().path !== null && CHROMIUM !== null;

export interface PhoneBrowser extends AsyncDisposable {
  readonly chromium: Chromium;
  /** Address of the phone's page. */
  readonly pageUrl: string;
}

/** Starts Chromium with a tone as its microphone, and serves it the page of the phone. */
export async function openPhoneBrowser(frequencyHz: number): Promise<PhoneBrowser> {
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'tandem-browser-'));
  opening.defer(() => rm(folder, { recursive: true }));
  const microphone = join(folder, 'microphone.wav');
  await writeTone(microphone, frequencyHz);
  const page = await servePhonePage();
  opening.defer(page.close);
  const chromium = opening.use(await Chromium.start({ microphone }));
  const opened = opening.move();
  return { chromium, pageUrl: page.url, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function servePhonePage(): Promise<{ url: string; close: () => void }> {
  const bundle = await rolldown({ input: join(import.meta.dirname, 'page/phone.js'), platform: 'browser' });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  const html = '<!doctype html><title>Phone</title><script type="module" src="/phone.js"></script>';
  const server = createServer((request, response) => {
    if (request.url === '/phone.js') response.setHeader('content-type', 'text/javascript').end(output[0].code);
    else response.setHeader('content-type', 'text/html').end(html);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close };
}

const SAMPLE_RATE_HZ = 48_000;

/** Writes one second of a tone as a WAV file, which the microphone repeats. */
export async function writeTone(path: string, frequencyHz: number): Promise<void> {
  const bytes = Buffer.alloc(44 + SAMPLE_RATE_HZ * 2);
  bytes.write('RIFF');
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.write('WAVEfmt ', 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(SAMPLE_RATE_HZ, 24);
  bytes.writeUInt32LE(SAMPLE_RATE_HZ * 2, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36);
  bytes.writeUInt32LE(SAMPLE_RATE_HZ * 2, 40);
  for (let i = 0; i < SAMPLE_RATE_HZ; i++) {
    bytes.writeInt16LE(Math.round(8_000 * Math.sin((2 * Math.PI * frequencyHz * i) / SAMPLE_RATE_HZ)), 44 + i * 2);
  }
  await writeFile(path, bytes);
}
