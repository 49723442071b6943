import { isOwnAddress } from '../runtime/network-address.ts';
import type { DatagramIo } from './datagrams/open-datagrams.ts';
import type { ListeningPlane } from './listening-plane.ts';
import { createListeningPlane } from './listening-plane.workers.ts';
import type { MediaPlane } from './media-plane.ts';
import { createMediaPlane, type MediaPlaneOptions } from './media-plane.workers.ts';
import { createWebRtcPlane, type WebRtcSettings } from './webrtc/webrtc-plane.mediasoup.ts';
import type { WebRtcPlane } from './webrtc/webrtc-plane.ts';

/** Subset of the settings in `settings.ts`. */
export interface MediaSettings extends WebRtcSettings {
  readonly mediaWorkers: number;
  readonly rtpIo: DatagramIo;
}

export interface Media extends AsyncDisposable {
  /** RTP sockets, relay and recording, in worker threads. */
  readonly mediaPlane: MediaPlane;
  /** Decoding, voice detection and utterances, in separate worker threads. */
  readonly listening: ListeningPlane;
  /** Browsers as parties of media sessions, in a separate process. */
  readonly webRtc: WebRtcPlane;
}

/** Starts the media workers and the listening workers, `mediaWorkers` of each. */
export function openMedia(settings: MediaSettings, { logger }: { logger: MediaPlaneOptions['logger'] }): Media {
  const opened = new AsyncDisposableStack();
  const workers = settings.mediaWorkers;
  const mediaPlane = createMediaPlane({ workers, rtpIo: settings.rtpIo, ...rtpAddress(settings), logger });
  opened.defer(() => mediaPlane.close());
  const listening = createListeningPlane({ workers, logger });
  opened.defer(() => listening.close());
  const webRtc = createWebRtcPlane(settings, { logger });
  opened.defer(() => webRtc.close());
  return { mediaPlane, listening, webRtc, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** An address behind NAT cannot be bound: bind all addresses and advertise the configured one in SDP. */
function rtpAddress({ rtpHost, rtpPortMin, rtpPortMax }: MediaSettings) {
  const range = { rtpPortMin, rtpPortMax };
  if (isOwnAddress(rtpHost)) return { rtpHost, ...range };
  return { rtpHost: rtpHost.includes(':') ? '::' : '0.0.0.0', advertisedHost: rtpHost, ...range };
}
