import { audioContext } from './audio-context.ts';
import { audioSettings } from './audio-settings.ts';
import { type LevelMeter, meterOf } from './level-meter.ts';
import { MicrophoneError, openMicrophone, silentTrack } from './microphone.ts';
import type { MicrophoneStatus } from './phone-state.ts';

interface VoiceOptions {
  onStatus: (status: MicrophoneStatus) => void;
  /** Called with each new track: another device, or the microphone after silence. */
  onTrack: (track: MediaStreamTrack) => void;
}

/** Outgoing audio of a phone: the microphone, or silence for a listening supervisor. */
export class Voice {
  readonly #options: VoiceOptions;
  #track: MediaStreamTrack | null = null;
  #opening: Promise<MediaStreamTrack> | null = null;
  #meter: LevelMeter | null = null;
  #isMuted = false;

  constructor(options: VoiceOptions) {
    this.#options = options;
  }

  /** Null while it is closed or being opened. */
  get track(): MediaStreamTrack | null {
    return this.#track;
  }

  /** Opens the microphone, or returns the open one. @throws MicrophoneError */
  async open(): Promise<MediaStreamTrack> {
    if (this.#track !== null) return this.#track;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null;
    });
    return await this.#opening;
  }

  async #open(): Promise<MediaStreamTrack> {
    this.#options.onStatus('asking');
    try {
      const track = await openChosenMicrophone();
      this.#options.onStatus('on');
      // The device was unplugged. The browser falls back to another one.
      track.onended = () => void this.reopen();
      return this.#use(track);
    } catch (error) {
      this.#options.onStatus(error instanceof MicrophoneError ? error.status : 'missing');
      throw error;
    }
  }

  openSilence(): void {
    this.#use(silentTrack(audioContext()));
  }

  /** Call after a change of device. The old one stays if the new one cannot be opened. */
  async reopen(): Promise<void> {
    await this.speak().catch(() => {});
  }

  /** Replaces silence by the microphone. @throws MicrophoneError; the silence then stays */
  async speak(): Promise<void> {
    const old = this.#track;
    if (old === null) return;
    this.#track = null;
    try {
      const track = await this.open();
      old.onended = null;
      old.stop();
      this.#options.onTrack(track);
    } catch (error) {
      this.#track = old;
      throw error;
    }
  }

  setMuted(isMuted: boolean): void {
    this.#isMuted = isMuted;
    if (this.#track !== null) this.#track.enabled = !isMuted;
  }

  level(): number {
    return this.#meter?.level() ?? 0;
  }

  /** Also turns off the browser's recording indicator. */
  close(): void {
    if (this.#track !== null) this.#track.onended = null;
    this.#track?.stop();
    this.#track = null;
    this.#meter?.close();
    this.#meter = null;
  }

  #use(track: MediaStreamTrack): MediaStreamTrack {
    this.#track = track;
    track.enabled = !this.#isMuted;
    this.#meter?.close();
    this.#meter = meterOf(audioContext(), track);
    return track;
  }
}

/** The user may change the settings while the browser asks for permission. */
async function openChosenMicrophone(): Promise<MediaStreamTrack> {
  for (;;) {
    const settings = audioSettings();
    const track = await openMicrophone(settings);
    if (settings === audioSettings()) return track;
    track.stop();
  }
}
