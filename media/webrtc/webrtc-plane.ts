import type { types } from 'mediasoup';
import type { RemoteMedia } from '../../machines/events.ts';
import type { LocalAddress } from '../media-plane.ts';

/** Browsers as parties of media sessions. Implemented in `webrtc-plane.mediasoup.ts`. */
export interface WebRtcPlane {
  /** Null while browsers can be connected; else why not, and what to do. */
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
  /** Aborting closes the media. */
  signal: AbortSignal;
  /** The worker died, and the media with it. */
  onLost: (detail: string) => void;
}

/** The media of a browser in one call. Names and objects are those of mediasoup, which a browser uses as they are. */
export interface BrowserMedia {
  /** For `Device.load()`. */
  readonly rtpCapabilities: types.RtpCapabilities;
  /** For the media session: resolves when the browser is connected, speaks and hears. Stays pending otherwise. */
  readonly connected: Promise<RemoteMedia>;
  /** One for each direction. A new one replaces the last, as after a page was loaded again. */
  createTransport(direction: Direction): Promise<BrowserTransport>;
  /** @throws UnknownTransport, and mediasoup's errors for parameters that it does not accept. So do the others. */
  connectTransport(id: string, dtlsParameters: types.DtlsParameters): Promise<void>;
  /** For a browser whose network has changed. */
  restartIce(id: string): Promise<types.IceParameters>;
  /** Takes what the browser says. Returns the id of the producer. */
  produce(transportId: string, voice: BrowserVoice): Promise<string>;
  /** Offers what the browser is to hear; nothing is sent before `resume`. */
  consume(transportId: string): Promise<HeardVoice>;
  resume(consumerId: string): Promise<void>;
  dump(): Promise<unknown>;
  /** Idempotent. */
  close(): void;
}

export type Direction = 'send' | 'recv';

/** For `device.createSendTransport()` and `device.createRecvTransport()`. */
export type BrowserTransport = Pick<types.WebRtcTransport, 'id' | 'iceParameters' | 'iceCandidates' | 'dtlsParameters'>;

/** The part of a browser's RTP parameters that matters: everything else is decided here. */
export interface BrowserVoice {
  /** Of PCMU. */
  payloadType: number;
  ssrc: number;
  mid?: string | undefined;
  cname?: string | undefined;
}

/** For `transport.consume()`. */
export type HeardVoice = Pick<types.Consumer, 'id' | 'producerId' | 'kind' | 'rtpParameters'>;

export class UnknownTransport extends Error {
  override readonly name = 'UnknownTransport';
}
