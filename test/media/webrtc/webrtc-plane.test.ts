import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createWebRtcPlane } from '../../../media/webrtc/webrtc-plane.mediasoup.ts';
import type { WebRtcPlane } from '../../../media/webrtc/webrtc-plane.ts';
import { findWorker } from '../../../media/webrtc/worker-binary.ts';
import { untilTruthy } from '../../eventually.ts';
import { nicenessOf, raisedNiceness } from '../../niceness.ts';

const SETTINGS = { rtpHost: '127.0.0.1', rtpPortMin: 20_000, rtpPortMax: 29_999, webrtcPort: 0 };
const LOCAL = { host: '127.0.0.1', rtpPort: 29_990 };

/** The mediasoup worker is optional: `npm ci` downloads it where the network allows. */
describe.skipIf(findWorker().path === null)('WebRTC worker', () => {
  let plane: WebRtcPlane;
  let abort: AbortController;
  const lost: string[] = [];

  beforeEach(() => {
    plane = createWebRtcPlane(SETTINGS);
    abort = new AbortController();
    lost.length = 0;
  });
  afterEach(() => plane.close());

  const openBrowser = () =>
    plane.openBrowser({ local: LOCAL, signal: abort.signal, onLost: (detail) => void lost.push(detail) });
  const pid = async () => ((await plane.dump()) as { pid: number }).pid;

  it('offers one UDP port for all browsers at the carrier-facing address, with PCMU only', async () => {
    const browsers = await Promise.all([openBrowser(), openBrowser()]);
    const transports = await Promise.all(
      browsers.flatMap((each) => [each.createTransport('send'), each.createTransport('recv')]),
    );
    const candidates = transports.flatMap(({ iceCandidates }) => iceCandidates);
    expect(candidates).toHaveLength(4);
    expect(new Set(candidates.map(({ address, protocol, port }) => `${address} ${protocol} ${port}`)).size).toBe(1);
    expect(candidates[0]).toMatchObject({ address: '127.0.0.1', protocol: 'udp', type: 'host' });
    const { codecs } = browsers[0]!.rtpCapabilities;
    expect(codecs?.map(({ mimeType, preferredPayloadType }) => [mimeType, preferredPayloadType])).toEqual([
      ['audio/PCMU', 0],
    ]);
  });

  it('runs without the environment, in its own session, and ignores signals', async () => {
    const handlers = () => ['SIGINT', 'SIGTERM'].map((signal) => process.listenerCount(signal));
    const before = handlers();
    process.env.TANDEM_TEST_SECRET = 'not for the worker';
    await openBrowser().finally(() => delete process.env.TANDEM_TEST_SECRET);
    const id = await pid();
    expect(handlers()).toEqual(before);
    expect(readFileSync(`/proc/${id}/environ`, 'utf8')).toMatch(/^MEDIASOUP_VERSION=[\d.]+\0$/);
    expect(readFileSync(`/proc/${id}/stat`, 'utf8').split(') ')[1]?.split(' ')[3]).toBe(String(id));
    await plane.close();
    expect(() => process.kill(id, 0)).toThrow('ESRCH');
  });

  it.runIf(process.platform === 'linux')('runs before other programs, if the system permits', async () => {
    await openBrowser();
    expect(nicenessOf(await pid())).toBe(raisedNiceness());
  });

  it('restarts for the next browser after a crash, which ends current media', async () => {
    await openBrowser();
    const first = await pid();
    process.kill(first, 'SIGKILL');
    await untilTruthy(() => lost.length === 1, 'the loss is reported');
    const next = await openBrowser();
    expect(await pid()).not.toBe(first);
    expect((await next.createTransport('send')).iceCandidates).toHaveLength(1);
  });

  it('replaces the transport of a direction, and rejects unknown ids', async () => {
    const browser = await openBrowser();
    const { id: first } = await browser.createTransport('send');
    const { id: second } = await browser.createTransport('send');
    await expect(browser.restartIce(first)).rejects.toThrow('the transport does not exist');
    expect(await browser.restartIce(second)).toMatchObject({ usernameFragment: expect.any(String) });
    await expect(browser.consume(second)).rejects.toThrow('the transport does not exist');
    await expect(browser.resume(second)).rejects.toThrow('the consumer does not exist');
  });

  it('closes the media of a browser with its call', async () => {
    await openBrowser();
    abort.abort();
    expect(((await plane.dump()) as { browsers: unknown[] }).browsers).toEqual([]);
    await expect(openBrowser()).rejects.toThrow('aborted');
  });

  it('leaves no transport open that was created as its call ended', async () => {
    const browser = await openBrowser();
    const creating = browser.createTransport('send');
    abort.abort();
    await expect(creating).rejects.toThrow('the call has ended');
    await expect(browser.createTransport('recv')).rejects.toThrow('the call has ended');
  });
});

describe('WebRTC without the worker', () => {
  it('rejects browsers and names the remedy', async () => {
    const plane = createWebRtcPlane(SETTINGS, { env: { MEDIASOUP_WORKER_BIN: '/nonexistent/worker' } });
    expect(plane.unavailable).toMatch(/MEDIASOUP_WORKER_BIN names no program.*tandem webrtc install/);
    const opening = plane.openBrowser({ local: LOCAL, signal: new AbortController().signal, onLost: () => {} });
    await expect(opening).rejects.toMatchObject({ code: 'WEBRTC_NOT_AVAILABLE', message: plane.unavailable });
    await plane.close();
  });
});
