import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { types } from 'mediasoup';
import { TandemError } from '../../machines/errors.ts';
import type { RemoteMedia } from '../../machines/events.ts';
import { isOwnAddress } from '../../runtime/network-address.ts';
import { raisePriority } from '../../runtime/priority.ts';
import { MediasoupBrowser, PCMU } from './browser-media.ts';
import type { BrowserMedia, OpenBrowserOptions, WebRtcPlane } from './webrtc-plane.ts';
import { findWorker, HOW_TO_INSTALL } from './worker-binary.ts';

export interface WebRtcSettings {
  /** The address that carriers use. Browsers receive it in ICE candidates. */
  readonly rtpHost: string;
  readonly rtpPortMin: number;
  readonly rtpPortMax: number;
  /** UDP port for all browsers; 0 picks a free one. */
  readonly webrtcPort: number;
}

interface WebRtcPlaneOptions {
  logger?: { warn(fields: object, message: string): void };
  env?: NodeJS.ProcessEnv;
}

/** Creates the plane. The worker starts with the first browser, and again after it died. */
export function createWebRtcPlane(settings: WebRtcSettings, options: WebRtcPlaneOptions = {}): WebRtcPlane {
  return new MediasoupPlane(settings, options);
}

interface Running {
  worker: types.Worker;
  router: types.Router;
  webRtcServer: types.WebRtcServer;
}

class MediasoupPlane implements WebRtcPlane {
  readonly #settings: WebRtcSettings;
  readonly #options: WebRtcPlaneOptions;
  readonly #browsers = new Map<MediasoupBrowser, OpenBrowserOptions>();
  #running: Promise<Running> | null = null;
  #isClosed = false;

  constructor(settings: WebRtcSettings, options: WebRtcPlaneOptions) {
    this.#settings = settings;
    this.#options = options;
  }

  get unavailable(): string | null {
    const found = findWorker(this.#options.env);
    return found.path === null ? `Browsers cannot take part in calls: ${found.reason}. ${HOW_TO_INSTALL}` : null;
  }

  async openBrowser(options: OpenBrowserOptions): Promise<BrowserMedia> {
    options.signal.throwIfAborted();
    const { router, webRtcServer } = await this.#start();
    const { plainTransport, fromSession, remote } = await this.#join(router, options);
    const onClosed = () => this.#browsers.delete(browser);
    const browser = new MediasoupBrowser({ router, webRtcServer, plainTransport, fromSession, remote, onClosed });
    this.#browsers.set(browser, options);
    if (options.signal.aborted) browser.close();
    options.signal.addEventListener('abort', () => browser.close(), { once: true });
    options.signal.throwIfAborted();
    return browser;
  }

  async dump(): Promise<unknown> {
    const running = await this.#running?.catch(() => null);
    return {
      pid: running?.worker.pid ?? null,
      browsers: await Promise.all([...this.#browsers.keys()].map((browser) => browser.dump())),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const running = await this.#running?.catch(() => null);
    if (!running || running.worker.subprocessClosed) return;
    const gone = new Promise((resolve) => running.worker.once('subprocessclose', () => resolve(null)));
    running.worker.close();
    await gone;
  }

  /** Opens a transport on this machine, which the media session sees as a plain RTP peer. */
  async #join(router: types.Router, { local }: OpenBrowserOptions) {
    const ip = this.#sessionHost;
    const listenInfo = { protocol: 'udp' as const, ip, portRange: this.#plainTransportPorts };
    const plainTransport = await router.createPlainTransport({ listenInfo, rtcpMux: false, comedia: false });
    // The producer must know its SSRC in advance, and drops all others.
    const ssrc = randomInt(1, 2 ** 32);
    await plainTransport.connect({ ip, port: local.rtpPort, rtcpPort: local.rtpPort + 1 });
    const { kind, ...codec } = PCMU;
    const rtpParameters = { codecs: [{ ...codec, payloadType: 0 }], encodings: [{ ssrc }] };
    const fromSession = await plainTransport.produce({ kind, rtpParameters });
    const remote: RemoteMedia = {
      host: ip,
      rtpPort: plainTransport.tuple.localPort,
      rtcpPort: plainTransport.rtcpTuple?.localPort ?? 0,
      codec: 'PCMU',
      payloadType: 0,
      telephoneEventPayloadType: null,
      direction: 'sendrecv',
      expectedSsrc: ssrc,
    };
    return { plainTransport, fromSession, remote };
  }

  /** Where the media workers bind their sockets (`open-media.ts`): all addresses include loopback. */
  get #sessionHost(): string {
    const { rtpHost } = this.#settings;
    if (isOwnAddress(rtpHost)) return rtpHost;
    return rtpHost.includes(':') ? '::1' : '127.0.0.1';
  }

  /** Outside the port range of the media sessions, to prevent conflicts. */
  get #plainTransportPorts(): types.TransportPortRange {
    const { rtpPortMin, rtpPortMax } = this.#settings;
    const isFree = ({ min, max }: types.TransportPortRange) => max < rtpPortMin || min > rtpPortMax;
    return PLAIN_TRANSPORT_PORTS.find(isFree) ?? PLAIN_TRANSPORT_PORTS[0]!;
  }

  #start(): Promise<Running> {
    if (this.#isClosed) throw new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.');
    const { unavailable } = this;
    if (unavailable !== null) throw new TandemError('WEBRTC_NOT_AVAILABLE', unavailable);
    this.#running ??= this.#startWorker().catch((cause: unknown) => {
      this.#running = null;
      this.#options.logger?.warn({ err: cause }, 'WebRTC worker could not be started');
      const message = `The WebRTC worker could not be started: is UDP port ${this.#settings.webrtcPort} free? Set WEBRTC_PORT to a free one.`;
      throw new TandemError('WEBRTC_NOT_AVAILABLE', message, { cause });
    });
    return this.#running;
  }

  async #startWorker(): Promise<Running> {
    const { createWorker } = await import('mediasoup');
    const worker = await withoutSignalHandlers(() => createWorker({ logLevel: 'error', workerBin: START_WORKER }));
    raisePriority(worker.pid);
    try {
      const { rtpHost, webrtcPort } = this.#settings;
      const address = isOwnAddress(rtpHost)
        ? { ip: rtpHost }
        : { ip: rtpHost.includes(':') ? '::' : '0.0.0.0', announcedAddress: rtpHost };
      const port = webrtcPort === 0 ? { portRange: this.#plainTransportPorts } : { port: webrtcPort };
      const webRtcServer = await worker.createWebRtcServer({ listenInfos: [{ protocol: 'udp', ...address, ...port }] });
      const router = await worker.createRouter({ mediaCodecs: [{ ...PCMU, preferredPayloadType: 0 }] });
      worker.once('died', () => this.#lose());
      return { worker, router, webRtcServer };
    } catch (error) {
      worker.close();
      throw error;
    }
  }

  #lose(): void {
    this.#running = null;
    const lost = [...this.#browsers.values()];
    this.#browsers.clear();
    this.#options.logger?.warn({ browsers: lost.length }, 'WebRTC worker lost');
    for (const { onLost } of lost) onLost('the WebRTC worker died');
  }
}

const PLAIN_TRANSPORT_PORTS: readonly types.TransportPortRange[] = [
  { min: 10_000, max: 14_999 },
  { min: 31_000, max: 35_999 },
  { min: 60_000, max: 65_000 },
];

/** See the head of the script for the reason. */
const START_WORKER = fileURLToPath(new URL('./start-worker.sh', import.meta.url));

/** mediasoup closes its workers at the first SIGTERM, while calls may still finish. */
async function withoutSignalHandlers<T>(start: () => Promise<T>): Promise<T> {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const before = signals.map((signal) => process.listeners(signal));
  // It adds its handlers synchronously.
  const starting = start();
  for (const [index, signal] of signals.entries()) {
    for (const listener of process.listeners(signal)) {
      if (!before[index]!.includes(listener)) process.removeListener(signal, listener);
    }
  }
  return await starting;
}
