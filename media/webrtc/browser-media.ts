import type { types } from 'mediasoup';
import type { RemoteMedia } from '../../machines/events.ts';
import {
  type BrowserMedia,
  type BrowserTransport,
  type BrowserVoice,
  type Direction,
  type HeardVoice,
  UnknownTransport,
} from './webrtc-plane.ts';

/** PCMU, the codec of the telephone network, so that browser audio is forwarded unchanged. */
export const PCMU = { kind: 'audio', mimeType: 'audio/PCMU', clockRate: 8000, channels: 1 } as const;

interface MediasoupBrowserOptions {
  router: types.Router;
  webRtcServer: types.WebRtcServer;
  /** Plain transport to the party of the media session. */
  joint: types.PlainTransport;
  /** On the joint: audio for the browser. */
  heard: types.Producer;
  /** The joint's address for the media session. */
  remote: RemoteMedia;
  onClosed: () => void;
}

/** The two WebRTC transports of a browser, and the joint between them and the media session. */
export class MediasoupBrowser implements BrowserMedia {
  readonly rtpCapabilities: types.RtpCapabilities;
  readonly connected: Promise<RemoteMedia>;
  readonly #options: MediasoupBrowserOptions;
  readonly #transports = new Map<Direction, types.WebRtcTransport>();
  readonly #consumers = new Map<string, types.Consumer>();
  readonly #connect: () => void;
  #speaks = false;
  #hears = false;

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

  async produce(transportId: string, { payloadType, ssrc, mid, cname }: BrowserVoice): Promise<string> {
    const producer = await this.#transport(transportId, 'send').produce({
      kind: 'audio',
      rtpParameters: {
        ...(mid !== undefined && { mid }),
        codecs: [{ mimeType: PCMU.mimeType, clockRate: PCMU.clockRate, channels: PCMU.channels, payloadType }],
        encodings: [{ ssrc }],
        rtcp: { ...(cname !== undefined && { cname }) },
      },
    });
    await this.#options.joint.consume({ producerId: producer.id, rtpCapabilities: this.#plainCapabilities() });
    this.#speaks = true;
    this.#checkConnected();
    return producer.id;
  }

  async consume(transportId: string): Promise<HeardVoice> {
    const consumer = await this.#transport(transportId, 'recv').consume({
      producerId: this.#options.heard.id,
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
    this.#hears = true;
    this.#checkConnected();
  }

  async dump(): Promise<unknown> {
    const { joint, heard } = this.#options;
    return {
      transports: [...this.#transports].map(([direction, { iceState, dtlsState }]) => ({
        direction,
        iceState,
        dtlsState,
      })),
      joint: joint.closed ? null : await joint.getStats(),
      heard: heard.closed ? null : await heard.getStats(),
    };
  }

  close(): void {
    for (const transport of this.#transports.values()) transport.close();
    this.#options.joint.close();
    this.#options.onClosed();
  }

  /** Without header extensions, which neither the media session nor a single voice needs. */
  #plainCapabilities(): types.RtpCapabilities {
    return { codecs: this.rtpCapabilities.codecs ?? [], headerExtensions: [] };
  }

  #checkConnected(): void {
    const isOpen = (direction: Direction) => this.#transports.get(direction)?.dtlsState === 'connected';
    if (this.#speaks && this.#hears && isOpen('send') && isOpen('recv')) this.#connect();
  }

  #transport(id: string, wanted?: Direction): types.WebRtcTransport {
    for (const [direction, transport] of this.#transports) {
      if (transport.id === id && !transport.closed && (wanted ?? direction) === direction) return transport;
    }
    throw new UnknownTransport('the transport does not exist');
  }
}
