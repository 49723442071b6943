import type { Consumer, Producer, Transport } from 'mediasoup-client/types';
import { audioContext } from './audio-context.ts';
import { type LevelMeter, meterOf } from './level-meter.ts';
import { totalsOf } from './network-totals.ts';
import type { SendRequest } from './phone-messages.ts';
import { SocketLost } from './phone-socket.ts';
import { type NetworkTotals, type Quality, qualityBetween } from './quality.ts';

interface CallAudioOptions {
  callId: string;
  request: SendRequest;
  /** Returns the audio sent to the other party. `close` leaves it running. */
  openTrack: () => Promise<MediaStreamTrack>;
  /** Returns null for the browser's default. */
  speakerId: () => string | null;
  /** The browser blocks sound until the user clicks. */
  onPlaybackBlocked: () => void;
  /** Every two seconds. */
  onQuality: (quality: Quality | null) => void;
}

const MEASURE_MS = 2_000;
/** How long a connection may be down before an ICE restart. */
const BROKEN_MS = 2_000;

/**
 * Audio of one call in both directions. Opening it again, for example after a reload, replaces the transports at the
 * server.
 */
export class CallAudio {
  readonly #options: CallAudioOptions;
  readonly #element = new Audio();
  readonly #transports: Transport[] = [];
  readonly #timers = new Map<Transport, ReturnType<typeof setTimeout>>();
  #producer: Producer | null = null;
  #farMeter: LevelMeter | null = null;
  #measuring: ReturnType<typeof setInterval> | undefined;
  #measured: NetworkTotals | null = null;

  private constructor(options: CallAudioOptions) {
    this.#options = options;
  }

  /** Answers the call. @throws PhoneRefusal, SocketLost, MicrophoneError */
  static async open(options: CallAudioOptions): Promise<CallAudio> {
    const audio = new CallAudio(options);
    try {
      await audio.#connect();
      return audio;
    } catch (error) {
      audio.close();
      throw error;
    }
  }

  /** Loudness of the received audio, from 0 to 1. */
  level(): number {
    return this.#farMeter?.level() ?? 0;
  }

  async speak(track: MediaStreamTrack): Promise<void> {
    await this.#producer!.replaceTrack({ track });
  }

  /** Null: the browser's default. Ignored if the browser cannot choose. */
  async setSpeaker(speakerId: string | null): Promise<void> {
    if ('setSinkId' in this.#element) await this.#element.setSinkId(speakerId ?? '').catch(() => {});
  }

  /** Call it in a click handler after playback was blocked. */
  async play(): Promise<boolean> {
    try {
      await this.#element.play();
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    clearInterval(this.#measuring);
    this.#farMeter?.close();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    for (const transport of this.#transports) transport.close();
    this.#element.srcObject = null;
    this.#element.remove();
  }

  async #connect(): Promise<void> {
    const { callId, request, openTrack } = this.#options;
    const of = { call_id: callId };
    const [{ Device }, { router_rtp_capabilities: routerRtpCapabilities }] = await Promise.all([
      import('mediasoup-client'),
      request('answer', of),
    ]);
    const device = await Device.factory();
    await device.load({ routerRtpCapabilities });

    const sending = device.createSendTransport(
      (await request('create_transport', { ...of, direction: 'send' })).transport,
    );
    this.#keepConnected(sending);
    sending.on('produce', ({ rtpParameters }, resolve, reject) => {
      request('produce', { ...of, transport_id: sending.id, rtp_parameters: rtpParameters }).then(
        ({ producer_id: id }) => resolve({ id }),
        reject,
      );
    });
    const track = await openTrack();
    this.#producer = await sending.produce({ track, stopTracks: false, disableTrackOnPause: false });

    const receiving = device.createRecvTransport(
      (await request('create_transport', { ...of, direction: 'recv' })).transport,
    );
    this.#keepConnected(receiving);
    const { consumer: offered } = await request('consume', { ...of, transport_id: receiving.id });
    const consumer: Consumer = await receiving.consume(offered);
    await request('resume_consumer', { ...of, consumer_id: consumer.id });
    await this.#hear(consumer.track);
    this.#measuring = setInterval(() => void this.#measure(), MEASURE_MS);
  }

  async #hear(track: MediaStreamTrack): Promise<void> {
    this.#element.srcObject = new MediaStream([track]);
    this.#element.autoplay = true;
    document.body.append(this.#element);
    this.#farMeter = meterOf(audioContext(), track);
    await this.setSpeaker(this.#options.speakerId());
    if (!(await this.play())) this.#options.onPlaybackBlocked();
  }

  async #measure(): Promise<void> {
    const now = totalsOf(await Promise.all(this.#transports.map((transport) => transport.getStats())));
    if (this.#measured !== null) this.#options.onQuality(qualityBetween(this.#measured, now));
    this.#measured = now;
  }

  #keepConnected(transport: Transport): void {
    const { callId, request } = this.#options;
    this.#transports.push(transport);
    transport.on('connect', ({ dtlsParameters }, resolve, reject) => {
      const fields = { call_id: callId, transport_id: transport.id, dtls_parameters: dtlsParameters };
      request('connect_transport', fields).then(() => resolve(), reject);
    });
    transport.on('connectionstatechange', (state) => {
      clearTimeout(this.#timers.get(transport));
      if (state === 'failed') void this.#restartIce(transport);
      else if (state === 'disconnected') this.#restartIceSoon(transport);
    });
  }

  #restartIceSoon(transport: Transport): void {
    clearTimeout(this.#timers.get(transport));
    const restart = () => void this.#restartIce(transport);
    this.#timers.set(transport, setTimeout(restart, BROKEN_MS));
  }

  async #restartIce(transport: Transport): Promise<void> {
    const { callId, request } = this.#options;
    try {
      const fields = { call_id: callId, transport_id: transport.id };
      const { ice_parameters: iceParameters } = await request('restart_ice', fields);
      if (!transport.closed) await transport.restartIce({ iceParameters });
    } catch (error) {
      // A change of network often loses the socket, too. Other failures end the call by themselves: MEDIA_TIMEOUT.
      const isBroken = transport.connectionState === 'disconnected' || transport.connectionState === 'failed';
      if (error instanceof SocketLost && isBroken) this.#restartIceSoon(transport);
    }
  }
}
