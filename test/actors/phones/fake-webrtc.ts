import { TandemError } from '../../../machines/errors.ts';
import type { RemoteMedia } from '../../../machines/events.ts';
import type { BrowserMedia, OpenBrowserOptions, WebRtcPlane } from '../../../media/webrtc/webrtc-plane.ts';
import { UnknownTransport } from '../../../media/webrtc/webrtc-plane.ts';
import { remoteMedia } from '../fakes.ts';

/** A plane without a worker; the test connects browsers. */
export class FakeWebRtc implements WebRtcPlane {
  unavailable: string | null = null;
  readonly opened: { options: OpenBrowserOptions; browser: FakeBrowser }[] = [];

  async openBrowser(options: OpenBrowserOptions): Promise<BrowserMedia> {
    if (this.unavailable !== null) throw new TandemError('WEBRTC_NOT_AVAILABLE', this.unavailable);
    const browser = new FakeBrowser();
    this.opened.push({ options, browser });
    return browser;
  }

  async dump(): Promise<unknown> {
    return {};
  }

  async close(): Promise<void> {}
}

class FakeBrowser implements BrowserMedia {
  readonly rtpCapabilities = { codecs: [], headerExtensions: [] };
  readonly connected: Promise<RemoteMedia>;
  readonly connect: () => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<RemoteMedia>();
    this.connected = promise;
    this.connect = () => resolve(remoteMedia());
  }

  createTransport(): Promise<never> {
    throw new UnknownTransport('the transport does not exist');
  }
  connectTransport = this.createTransport;
  restartIce = this.createTransport;
  produce = this.createTransport;
  consume = this.createTransport;
  resume = this.createTransport;

  async dump(): Promise<unknown> {
    return {};
  }

  close(): void {}
}
