import { microphoneText } from '../text/phone.ts';
import type { AudioSettings } from './audio-settings.ts';
import type { MicrophoneFault } from './phone-state.ts';

/** The microphone cannot be used. The message has advice. */
export class MicrophoneError extends Error {
  override readonly name = 'MicrophoneError';
  readonly status: MicrophoneFault;

  constructor(status: MicrophoneFault, cause?: unknown) {
    super(microphoneText[status].hint, { cause });
    this.status = status;
  }
}

/** Asks for permission where the browser needs it. @throws MicrophoneError */
export async function openMicrophone(settings: AudioSettings): Promise<MediaStreamTrack> {
  // Browsers hide it from plain http pages.
  if (!navigator.mediaDevices) throw new MicrophoneError('insecure');
  const { microphoneId, isVoiceProcessed } = settings;
  const audio = {
    echoCancellation: isVoiceProcessed,
    noiseSuppression: isVoiceProcessed,
    autoGainControl: isVoiceProcessed,
    ...(microphoneId !== null && { deviceId: { exact: microphoneId } }),
  };
  try {
    return trackOf(await navigator.mediaDevices.getUserMedia({ audio }));
  } catch (error) {
    const { name } = error as DOMException;
    // The remembered device is unplugged.
    if (microphoneId !== null && (name === 'OverconstrainedError' || name === 'NotFoundError'))
      return await openMicrophone({ ...settings, microphoneId: null });
    throw new MicrophoneError(STATUS_OF_ERROR[name] ?? 'missing', error);
  }
}

/** https://w3c.github.io/mediacapture-main/#dom-mediadevices-getusermedia */
const STATUS_OF_ERROR: Record<string, MicrophoneFault> = {
  NotAllowedError: 'denied',
  SecurityError: 'insecure',
  NotFoundError: 'missing',
  NotReadableError: 'busy',
  AbortError: 'busy',
};

function trackOf(stream: MediaStream): MediaStreamTrack {
  const [track] = stream.getAudioTracks();
  if (track === undefined) throw new MicrophoneError('missing');
  return track;
}

/** A silent track, for a phone that only listens: the browser does not ask for the microphone. */
export function silentTrack(context: AudioContext): MediaStreamTrack {
  return trackOf(context.createMediaStreamDestination().stream);
}
