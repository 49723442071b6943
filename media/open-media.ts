import { isOwnAddress } from '../runtime/network-address.ts';
import type { DatagramIo } from './datagrams/open-datagrams.ts';
import { createListeningPlane, type WarmableListeningPlane } from './listening-plane.workers.ts';
import type { MediaPlane } from './media-plane.ts';
import { createMediaPlane, type MediaPlaneOptions } from './media-plane.workers.ts';

/** As `settings.ts` has them. */
export interface MediaSettings {
  readonly mediaWorkers: number;
  readonly rtpIo: DatagramIo;
  readonly rtpHost: string;
  readonly rtpPortMin: number;
  readonly rtpPortMax: number;
}

export interface Media extends AsyncDisposable {
  /** RTP sockets, relay and recording, in worker threads. */
  readonly mediaPlane: MediaPlane;
  /** Decoding, voice activity and utterances, in worker threads of their own. */
  readonly listening: WarmableListeningPlane;
}

/** Starts the media workers and the listening workers, `mediaWorkers` of each. */
export function openMedia(settings: MediaSettings, { logger }: { logger: MediaPlaneOptions['logger'] }): Media {
  const opened = new AsyncDisposableStack();
  const workers = settings.mediaWorkers;
  const mediaPlane = createMediaPlane({ workers, rtpIo: settings.rtpIo, ...rtpAddress(settings), logger });
  opened.defer(() => mediaPlane.close());
  const listening = createListeningPlane({ workers, logger });
  opened.defer(() => listening.close());
  return { mediaPlane, listening, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** An address behind NAT cannot be bound: bind all addresses and advertise the configured one in SDP. */
function rtpAddress({ rtpHost, rtpPortMin, rtpPortMax }: MediaSettings) {
  const range = { rtpPortMin, rtpPortMax };
  if (isOwnAddress(rtpHost)) return { rtpHost, ...range };
  return { rtpHost: rtpHost.includes(':') ? '::' : '0.0.0.0', advertisedHost: rtpHost, ...range };
}
