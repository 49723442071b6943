import { currentWorkspaceId } from '../app/workspace.ts';
import { audioContext } from './audio-context.ts';
import { audioSettings, watchAudioSettings } from './audio-settings.ts';
import { CallAudio } from './call-audio.ts';
import { CallControls } from './call-controls.ts';
import { MicrophoneError } from './microphone.ts';
import { PhoneLink } from './phone-link.ts';
import type { Remembered } from './phone-memory.ts';
import type { Notice, ServerCall } from './phone-messages.ts';
import type { PhoneClientOptions } from './phone-options.ts';
import { callOf, endedOf, isOnlyForPhone, PHONE_OFF, type PhoneCall, type PhoneState } from './phone-state.ts';
import { PhoneStore } from './phone-store.ts';
import { Voice } from './voice.ts';

/**
 * A browser phone as described in `docs/phone.md`, for `useSyncExternalStore` or other observers. Independent of the
 * shown page, and survives the loss of its socket.
 */
export class PhoneClient {
  readonly #options: PhoneClientOptions;
  readonly #store = new PhoneStore();
  readonly #voice = new Voice({
    onStatus: (microphone) => this.#store.change({ microphone }),
    // A call may end while the browser asks for the microphone.
    onTrack: (track) => (this.#store.state.call === null ? this.#voice.close() : void this.#audio?.speak(track)),
  });
  #link: PhoneLink | null = null;
  #resumeToken: string | null = null;
  /** The workspace that was current when the phone started. */
  workspaceId: string | null = null;
  #audio: CallAudio | null = null;
  #isOpening = false;
  #isMuted = false;
  #isSilent: boolean;
  #unwatch = () => {};
  #controls: CallControls | null = null;

  constructor(options: PhoneClientOptions) {
    this.#options = options;
    this.#isSilent = options.isSilent ?? false;
  }

  readonly getState = (): PhoneState => this.#store.state;

  readonly subscribe = (watcher: () => void): (() => void) => this.#store.subscribe(watcher);

  /** Hold, keys and transfers of the call. Null without one. */
  get controls(): CallControls | null {
    return this.#store.state.call === null ? null : this.#controls;
  }

  /** Requests the microphone before a call needs it. @throws MicrophoneError */
  async checkMicrophone(): Promise<void> {
    await this.#voice.open();
    if (this.#store.state.call === null) this.#voice.close();
  }

  /** Connects the phone. With remembered state, resumes its call. */
  start(remembered: Remembered | null = null): void {
    if (this.#link !== null) return;
    this.#isMuted = remembered?.isMuted ?? false;
    this.#resumeToken = remembered?.resumeToken ?? null;
    this.workspaceId = remembered?.workspaceId ?? currentWorkspaceId();
    this.#unwatch = watchAudioSettings(() => void this.#applySettings());
    this.#store.change({ ...PHONE_OFF, microphone: this.#store.state.microphone, link: 'connecting' });
    this.#link = new PhoneLink({
      purpose: this.#options.purpose,
      workspaceId: this.workspaceId,
      callId: this.#options.callId ?? null,
      resumeToken: this.#resumeToken,
      onNotice: (notice) => this.#receive(notice),
      onInterrupted: () => this.#store.change({ link: 'reconnecting' }),
      onForgotten: () => this.#end(null),
      onRefused: (problem) => this.#turnOff({ problem }),
    });
  }

  /** Turns the phone off, and ends its call. */
  stop(): void {
    this.#link?.close();
    this.#turnOff({ problem: null });
  }

  /** Answers the call; call it again after the microphone was rejected. Reports failures in the state. */
  async answer(): Promise<void> {
    const { call } = this.#store.state;
    if (call === null || call.phase === 'ending' || this.#audio !== null || this.#isOpening) return;
    this.#isOpening = true;
    try {
      if (this.#isSilent) this.#voice.openSilence();
      else await this.#voice.open();
      this.#voice.setMuted(this.#isMuted);
      if (!this.#store.isCurrent(call)) return;
      // After a reload the call continues, and the server does not repeat that it is answered.
      if (call.phase === 'ringing') this.#store.changeCall({ phase: 'connecting' });
      this.#controls?.follow();
      await this.#openAudio(call);
    } catch (error) {
      this.#failToAnswer(call, error);
    } finally {
      this.#isOpening = false;
      if (this.#store.state.call === null) this.#voice.close();
    }
  }

  /** Hangs up, or rejects a ringing call. */
  async hangUp(): Promise<void> {
    const { call } = this.#store.state;
    if (call === null || call.phase === 'ending') return;
    this.#store.changeCall({ phase: 'ending' });
    await this.#requestEnd(call);
  }

  /** Mutes the microphone locally, so that neither the other party nor the recording receives it. */
  setMuted(isMuted: boolean): void {
    this.#isMuted = isMuted;
    this.#voice.setMuted(isMuted);
    this.#store.changeCall({ isMuted });
    this.#remember();
  }

  /** Replaces the silence of `isSilent` by the microphone. @throws MicrophoneError */
  async speak(): Promise<void> {
    if (!this.#isSilent) return;
    await this.#voice.speak();
    this.#isSilent = false;
  }

  /** Call it in a click handler if the browser blocks sound. */
  async play(): Promise<void> {
    audioContext();
    if (await this.#audio?.play()) this.#store.change({ isPlaybackBlocked: false });
  }

  /** Loudness from 0 to 1, for meters that are drawn many times a second. */
  levels(): { microphone: number; far: number } {
    return { microphone: this.#voice.level(), far: this.#audio?.level() ?? 0 };
  }

  async #requestEnd({ callId, phase }: Pick<PhoneCall, 'callId' | 'phase'>): Promise<void> {
    const isKnown = await this.#link?.end({ callId, isRinging: phase === 'ringing' });
    if (isKnown === false && this.#store.state.call?.callId === callId) this.#end(null);
  }

  async #openAudio(call: PhoneCall): Promise<void> {
    const audio = await CallAudio.open({
      callId: call.callId,
      request: this.#link!.request,
      openTrack: () => this.#voice.open(),
      speakerId: () => audioSettings().speakerId,
      onPlaybackBlocked: () => this.#store.change({ isPlaybackBlocked: true }),
      onQuality: (quality) => this.#store.change({ quality }),
    });
    if (!this.#store.isCurrent(call)) {
      audio.close();
      return;
    }
    this.#audio = audio;
    this.#store.changeCall({ isAudible: true });
    // Another microphone may have replaced the first while the audio connected.
    if (this.#voice.track !== null) void audio.speak(this.#voice.track);
  }

  #failToAnswer(call: PhoneCall, error: unknown): void {
    if (!this.#store.isCurrent(call)) return;
    // The state has the reason, and the call rings on.
    if (error instanceof MicrophoneError) return;
    // The next `welcome` shows whether the server received the answer.
    if (this.#store.state.link !== 'online') return;
    void this.#link?.request('hangup', { call_id: call.callId }).catch(() => {});
    this.#end('MEDIA_FAILED');
  }

  #receive(notice: Notice): void {
    if (notice.type === 'welcome') {
      this.#resumeToken = notice.resume_token;
      this.#store.change({ link: 'online' });
      this.#remember();
      this.#reconcile(notice.call);
    } else if (notice.type === 'incoming') this.#reconcile(notice.call);
    else if (notice.call_id !== this.#store.state.call?.callId) return;
    else if (notice.type === 'ended') this.#end(notice.hangup_cause);
    else if (notice.type === 'answered') this.#store.changeCall({ phase: 'answered' });
    else this.#store.changeCall({ isHeld: notice.type === 'held' });
  }

  /** Adopts the server's call. */
  #reconcile(known: ServerCall | null): void {
    const { call } = this.#store.state;
    if (call !== null && call.callId !== known?.call_id) this.#end(null);
    if (known === null) return;
    if (this.#store.state.call === null) this.#begin(known);
    else this.#store.changeCall({ phase: known.state, isHeld: known.held });
    // The request to end the call was lost with the socket.
    if (this.#store.state.call?.phase === 'ending') {
      void this.#requestEnd({ callId: known.call_id, phase: known.state });
      return;
    }
    // The page was reloaded, or the socket was lost while answering.
    if (known.state !== 'ringing' || this.#options.answersItself?.(known)) void this.answer();
  }

  #begin(known: ServerCall): void {
    // A new call starts unmuted. A call resumed after a reload keeps its mute state.
    if (known.state === 'ringing') {
      this.#isMuted = false;
      this.#remember();
    }
    const call = callOf(known, { isMuted: this.#isMuted });
    this.#store.change({ call, ended: null, quality: null });
    const onProgress = (progress: PhoneCall['progress']) => this.#store.changeProgress(call.callId, progress);
    // The previous call's controls would follow it to its outcome.
    this.#controls?.close();
    this.#controls = new CallControls({ ...call, workspaceId: this.workspaceId, onProgress });
  }

  #end(hangupCause: string | null): void {
    const { call } = this.#store.state;
    if (call === null) return;
    if (isOnlyForPhone(hangupCause)) this.#controls?.close();
    this.#audio?.close();
    this.#audio = null;
    this.#voice.close();
    this.#store.change({ call: null, ended: endedOf(call, hangupCause), quality: null, isPlaybackBlocked: false });
  }

  #turnOff({ problem }: Pick<PhoneState, 'problem'>): void {
    this.#link = null;
    this.#unwatch();
    this.#end(null);
    this.#controls?.close();
    this.#store.change({ link: 'off', problem });
    this.#options.remember?.(null);
  }

  #remember(): void {
    if (this.#resumeToken === null || this.#link === null) return;
    this.#options.remember?.({ resumeToken: this.#resumeToken, workspaceId: this.workspaceId, isMuted: this.#isMuted });
  }

  async #applySettings(): Promise<void> {
    await this.#audio?.setSpeaker(audioSettings().speakerId);
    if (!this.#isSilent) await this.#voice.reopen();
  }
}
