import { TandemError } from '../../machines/errors.ts';
import type { LocalAddress } from '../../media/media-plane.ts';
import {
  type BrowserMedia,
  type OpenBrowserOptions,
  UnknownTransport,
  type WebRtcPlane,
} from '../../media/webrtc/webrtc-plane.ts';
import type { PhoneRequest } from './phone-desk.ts';

/** Media of the phone that answered a leg. It is on the node of the call, which may not be the node of the phone. */
export interface PhoneMedia extends Pick<BrowserMedia, 'rtpCapabilities' | 'connected'> {
  /**
   * Carries out a request and resolves with the reply's fields.
   * @throws TandemError VALIDATION_FAILED for parameters that mediasoup rejects; NODE_UNREACHABLE
   */
  carryOut(request: MediaRequest): Promise<object>;
}

export type MediaRequest = Extract<
  PhoneRequest,
  { transportId: string } | { direction: string } | { consumerId: string }
>;

/**
 * Opens the media of the phone that answers. Null: another phone was faster.
 * @throws TandemError WEBRTC_NOT_AVAILABLE, NODE_UNREACHABLE
 */
export type OpenPhoneMedia = (options: Pick<OpenBrowserOptions, 'signal' | 'onLost'>) => Promise<PhoneMedia | null>;

/** Opens media on this node, for the address of the media session. */
export function openingPhoneMedia(webRtc: WebRtcPlane, local: LocalAddress): OpenPhoneMedia {
  return async (options) => {
    const media = await webRtc.openBrowser({ local, ...options });
    return {
      rtpCapabilities: media.rtpCapabilities,
      connected: media.connected,
      carryOut: (request) => carryOut(media, request),
    };
  };
}

async function carryOut(media: BrowserMedia, request: MediaRequest): Promise<object> {
  try {
    switch (request.type) {
      case 'create_transport':
        return { transport: await media.createTransport(request.direction) };
      case 'connect_transport':
        await media.connectTransport(request.transportId, request.dtlsParameters);
        return {};
      case 'restart_ice':
        return { ice_parameters: await media.restartIce(request.transportId) };
      case 'produce':
        return { producer_id: await media.produce(request.transportId, request.voice) };
      case 'consume':
        return { consumer: await media.consume(request.transportId) };
      case 'resume_consumer':
        await media.resume(request.consumerId);
        return {};
    }
  } catch (cause) {
    const detail = cause instanceof UnknownTransport ? cause.message : 'the parameters were not accepted';
    throw new TandemError('VALIDATION_FAILED', `${request.type} failed: ${detail}.`, { cause });
  }
}
