import type { types } from 'mediasoup';
import type { RemoteMedia } from '../../machines/events.ts';
import {
  type BrowserMedia,
  type BrowserTransport,
  type ConsumerParameters,
  type Direction,
  type ProducerParameters,
  UnknownTransport,
} from './webrtc-plane.ts';

/** PCMU, the codec of the telephone network, so that browser audio is forwarded unchanged. */
export const PCMU = { kind: 'audio', mimeType: 'audio/PCMU', clockRate: 8000, channels: 1 } as const;

interface MediasoupBrowserOptions {
  router: types.Router;
  webRtcServer: types.WebRtcServer;
  /** Plain RTP between mediasoup and the party of the media session. */
  plainTransport: types.PlainTransport;
  /** Audio from the media session, for the browser. */
  fromSession: types.Producer;
  /** Address of `plainTransport`, where the media session sends. */
  remote: RemoteMedia;
  /** Called by `close`. */
  onClosed: () => void;
}

/** Media of one browser on mediasoup: a WebRTC transport per direction, joined to the media session by plain RTP. */
export class MediasoupBrowser implements BrowserMedia {
  readonly rtpCapabilities: types.RtpCapabilities;
  readonly connected: Promise<RemoteMedia>;
  readonly #options: MediasoupBrowserOptions;
  readonly #transports = new Map<Direction, types.WebRtcTransport>();
  readonly #consumers = new Map<string, types.Consumer>();
  readonly #connect: () => void;
  #hasProducer = false;
  #isConsuming = false;
  #isClosed = false;

  constructor(options: MediasoupBrowserOptions) {
    const { promise, resolve } = Promise.withResolvers<RemoteMedia>();
    this.#options = options;
    this.#connect = () => resolve(options.remote);
    this.connected = promise;
    const { codecs = [], headerExtensions = [] } = options.router.rtpCapabilities;
    this.rtpCapabilities = { codecs, headerExtensions };
  }

  async createTransport(direction: Direction): Promise<BrowserTransport> {
    const { router, webRtcServer } = this.#options;
    const transport = await router.createWebRtcTransport({ webRtcServer, enableUdp: true, enableTcp: false });
    // The router lives on for other calls, and nothing else would close it.
    if (this.#isClosed) {
      transport.close();
      throw new UnknownTransport('the call has ended');
    }
    transport.on('dtlsstatechange', () => this.#checkConnected());
    this.#transports.get(direction)?.close();
    this.#transports.set(direction, transport);
    const { id, iceParameters, iceCandidates, dtlsParameters } = transport;
    return { id, iceParameters, iceCandidates, dtlsParameters };
  }

  async connectTransport(id: string, dtlsParameters: types.DtlsParameters): Promise<void> {
    await this.#transport(id).connect({ dtlsParameters });
  }

  async restartIce(id: string): Promise<types.IceParameters> {
    return await this.#transport(id).restartIce();
  }

  async produce(transportId: string, { payloadType, ssrc, mid, cname }: ProducerParameters): Promise<string> {
    const producer = await this.#transport(transportId, 'send').produce({
      kind: 'audio',
      rtpParameters: {
        ...(mid !== undefined && { mid }),
        codecs: [{ mimeType: PCMU.mimeType, clockRate: PCMU.clockRate, channels: PCMU.channels, payloadType }],
        encodings: [{ ssrc }],
        rtcp: { ...(cname !== undefined && { cname }) },
      },
    });
    await this.#options.plainTransport.consume({ producerId: producer.id, rtpCapabilities: this.#plainCapabilities() });
    this.#hasProducer = true;
    this.#checkConnected();
    return producer.id;
  }

  async consume(transportId: string): Promise<ConsumerParameters> {
    const consumer = await this.#transport(transportId, 'recv').consume({
      producerId: this.#options.fromSession.id,
      rtpCapabilities: this.#plainCapabilities(),
      paused: true,
    });
    this.#consumers.set(consumer.id, consumer);
    consumer.observer.once('close', () => this.#consumers.delete(consumer.id));
    const { id, producerId, kind, rtpParameters } = consumer;
    return { id, producerId, kind, rtpParameters };
  }

  async resume(consumerId: string): Promise<void> {
    const consumer = this.#consumers.get(consumerId);
    if (consumer === undefined) throw new UnknownTransport('the consumer does not exist');
    await consumer.resume();
    this.#isConsuming = true;
    this.#checkConnected();
  }

  async dump(): Promise<unknown> {
    const { plainTransport, fromSession } = this.#options;
    return {
      transports: [...this.#transports].map(([direction, { iceState, dtlsState }]) => ({
        direction,
        iceState,
        dtlsState,
      })),
      plainTransport: plainTransport.closed ? null : await plainTransport.getStats(),
      fromSession: fromSession.closed ? null : await fromSession.getStats(),
    };
  }

  close(): void {
    this.#isClosed = true;
    for (const transport of this.#transports.values()) transport.close();
    this.#options.plainTransport.close();
    this.#options.onClosed();
  }

  /** Without header extensions: neither the media session nor a single audio stream needs them. */
  #plainCapabilities(): types.RtpCapabilities {
    return { codecs: this.rtpCapabilities.codecs ?? [], headerExtensions: [] };
  }

  /** Resolves `connected` once both DTLS transports are up, the browser sends and its consumer is resumed. */
  #checkConnected(): void {
    const isOpen = (direction: Direction) => this.#transports.get(direction)?.dtlsState === 'connected';
    if (this.#hasProducer && this.#isConsuming && isOpen('send') && isOpen('recv')) this.#connect();
  }

  #transport(id: string, wanted?: Direction): types.WebRtcTransport {
    for (const [direction, transport] of this.#transports) {
      if (transport.id === id && !transport.closed && (wanted ?? direction) === direction) return transport;
    }
    throw new UnknownTransport('the transport does not exist');
  }
}
