import type { types } from 'mediasoup';
import type { RemoteMedia } from '../../machines/events.ts';
import type { LocalAddress } from '../media-plane.ts';

/** Browsers as parties of media sessions. Implemented in `webrtc-plane.mediasoup.ts`. */
export interface WebRtcPlane {
  /** Null if browsers can connect; else the reason and what to do. */
  readonly unavailable: string | null;
  /**
   * Prepares the media of one browser in one call, and starts the worker if it does not run.
   * @throws TandemError WEBRTC_NOT_AVAILABLE
   */
  openBrowser(options: OpenBrowserOptions): Promise<BrowserMedia>;
  dump(): Promise<unknown>;
  close(): Promise<void>;
}

export interface OpenBrowserOptions {
  /** The media session's address for this party. */
  local: LocalAddress;
  signal: AbortSignal;
  /** Called when the worker died, and the media with it. */
  onLost: (detail: string) => void;
}

/** Media of a browser in one call. Names and objects are mediasoup's, for direct use by a browser. */
export interface BrowserMedia {
  /** For `Device.load()`. */
  readonly rtpCapabilities: types.RtpCapabilities;
  /** Media address of the browser. Resolves when the browser sends and receives; may stay pending. */
  readonly connected: Promise<RemoteMedia>;
  /** Creates the transport of a direction. It replaces an earlier one, as after a page reload. */
  createTransport(direction: Direction): Promise<BrowserTransport>;
  /** @throws UnknownTransport, and mediasoup's errors for invalid parameters. The methods below throw the same. */
  connectTransport(id: string, dtlsParameters: types.DtlsParameters): Promise<void>;
  /** For a browser whose network has changed. */
  restartIce(id: string): Promise<types.IceParameters>;
  /** Receives the browser's audio. Returns the id of the producer. */
  produce(transportId: string, voice: ProducerParameters): Promise<string>;
  /** Offers audio to the browser; nothing is sent before `resume`. */
  consume(transportId: string): Promise<ConsumerParameters>;
  /** Starts to send to the browser. @throws UnknownTransport */
  resume(consumerId: string): Promise<void>;
  dump(): Promise<unknown>;
  /** Idempotent. */
  close(): void;
}

export type Direction = 'send' | 'recv';

/** For `device.createSendTransport()` and `device.createRecvTransport()`. */
export type BrowserTransport = Pick<types.WebRtcTransport, 'id' | 'iceParameters' | 'iceCandidates' | 'dtlsParameters'>;

/** The part of `producer.rtpParameters` that the server uses. It sets the rest itself. */
export interface ProducerParameters {
  /** Payload type that the browser uses for PCMU. */
  payloadType: number;
  ssrc: number;
  mid?: string | undefined;
  cname?: string | undefined;
}

/** For `transport.consume()`. */
export type ConsumerParameters = Pick<types.Consumer, 'id' | 'producerId' | 'kind' | 'rtpParameters'>;

export class UnknownTransport extends Error {
  override readonly name = 'UnknownTransport';
}
