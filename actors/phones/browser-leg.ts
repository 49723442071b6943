import type { HangupCause, LegEvent } from '../../machines/events.ts';
import type { LocalAddress } from '../../media/media-plane.ts';
import type { LegDialog } from '../../sip/sip-gateway.ts';
import type { Logger } from '../logger.ts';
import type { PhoneCall, PhoneNotice, PhonePurpose } from './phone-desk.ts';
import type { OpenPhoneMedia, PhoneMedia } from './phone-media.ts';

export interface BrowserDial extends RingRequest {
  localMedia: LocalAddress;
}

export interface RingRequest {
  workspaceId: string;
  userId: number;
  purpose: PhonePurpose;
  /** Shown by the phone. */
  call: Pick<PhoneCall, 'call_id' | 'reference_id' | 'leg_id' | 'role' | 'customer_number'>;
  /** Aborting abandons the leg without a further event. */
  signal: AbortSignal;
  onEvent: (event: LegEvent) => void;
}

/** The leg's view of a phone (`phone.ts`). */
export interface RungPhone {
  leg: BrowserLeg | null;
  send(notice: PhoneNotice): void;
}

export interface RingingLeg extends LegDialog {
  /** Ends it without an event, because a phone on another node has answered. */
  answeredElsewhere(): void;
}

interface BrowserLegOptions {
  dial: RingRequest;
  openMedia: OpenPhoneMedia;
  /**
   * Called when no phone can be reached, and again whenever that may have changed. The leg goes on waiting for a phone.
   * Null: it is refused.
   */
  onUnreached: ((reason: Unreached) => void) | null;
  logger: Logger;
  /** Called after the leg's last event, or when it is abandoned. */
  onOver: () => void;
}

/** `waiting`: for a phone to connect. `connecting`: a phone has answered, but its audio does not flow yet. */
type State = 'waiting' | PhoneCall['state'] | 'over';

/**
 * A leg to a browser. It rings on every phone it is offered to, and the first to answer gets it. To its leg machine it
 * looks like a SIP dialog. It keeps no timers, because the leg machine owns every deadline.
 */
export class BrowserLeg implements RingingLeg {
  readonly dial: RingRequest;
  readonly #options: BrowserLegOptions;
  /** Phones on which it rings, or the one that answered. */
  readonly #phones = new Set<RungPhone>();
  readonly #closing = new AbortController();
  #state: State = 'waiting';
  #isHeld = false;
  #media: PhoneMedia | null = null;
  #opening: Promise<PhoneMedia | null> = Promise.resolve(null);

  constructor(options: BrowserLegOptions) {
    this.dial = options.dial;
    this.#options = options;
    options.dial.signal.addEventListener('abort', () => this.#end('NORMAL_CLEARING', null), { once: true });
  }

  /** For a phone that connects or reconnects. */
  get call(): PhoneCall | null {
    const state = this.#state;
    if (state === 'waiting' || state === 'over') return null;
    return { ...this.dial.call, state, held: this.#isHeld };
  }

  get isRinging(): boolean {
    return this.#state === 'waiting' || this.#state === 'ringing';
  }

  get isWaiting(): boolean {
    return this.#state === 'waiting';
  }

  ring(phone: RungPhone): void {
    this.#phones.add(phone);
    phone.leg = this;
    const isFirst = this.#state === 'waiting';
    this.#state = 'ringing';
    phone.send({ type: 'incoming', call: this.call! });
    if (isFirst) this.#emit({ type: 'leg.ringing', sipStatus: 180, earlyMedia: null });
  }

  /**
   * Answers, also repeatedly: a reloaded page gets the same media and replaces its transports.
   * @throws TandemError WEBRTC_NOT_AVAILABLE; the leg has then ended
   */
  async answer(phone: RungPhone): Promise<PhoneMedia | null> {
    if (!this.#phones.has(phone)) return null;
    if (this.#state === 'ringing') {
      this.#state = 'connecting';
      for (const other of [...this.#phones]) if (other !== phone) this.#leave(other, 'ANSWERED_ELSEWHERE');
      this.#opening = this.#open();
    }
    return await this.#opening;
  }

  async #open(): Promise<PhoneMedia | null> {
    try {
      const media = await this.#options.openMedia({ signal: this.#closing.signal, onLost: () => this.#lose() });
      if (media === null) {
        this.answeredElsewhere();
        return null;
      }
      this.#media = media;
      void media.connected.then((remote) => {
        if (this.#state !== 'connecting') return;
        this.#state = 'answered';
        this.#emit({ type: 'leg.answered', sipStatus: 200, media: remote });
        for (const each of this.#phones) each.send({ type: 'answered', call_id: this.dial.call.call_id });
      });
      return media;
    } catch (error) {
      if (this.#closing.signal.aborted) return null;
      this.#options.logger.warn({ callId: this.dial.call.call_id, err: error }, 'media of a browser leg failed');
      this.refuse({ sipStatus: 503, hangupCause: 'NORMAL_TEMPORARY_FAILURE', detail: 'no media for the browser' });
      throw error;
    }
  }

  get media(): PhoneMedia | null {
    return this.#media;
  }

  press(digit: string, durationMs: number): void {
    if (this.#state === 'answered') this.#emit({ type: 'leg.pressed', digit, durationMs });
  }

  /** Ends the leg because the user hung up or the phone was lost. */
  hangUpBy(cause: 'NORMAL_CLEARING' | 'NETWORK_OUT_OF_ORDER'): void {
    if (this.#state === 'answered') this.#end(cause, { type: 'leg.ended', by: 'peer', hangupCause: cause });
    else this.refuse({ sipStatus: 603, hangupCause: 'CALL_REJECTED', detail: 'declined' });
  }

  /** Removes a lost phone. True: another phone still has the leg. */
  lose(phone: RungPhone): boolean {
    this.#phones.delete(phone);
    if (this.#phones.size > 0) return true;
    if (this.#state === 'answered') this.hangUpBy('NETWORK_OUT_OF_ORDER');
    else if (this.#state === 'connecting') this.refuse(UNREACHED);
    else if (this.#state === 'ringing') this.#state = 'waiting';
    return false;
  }

  /** For a waiting leg. */
  giveUp(reason: Unreached): void {
    if (this.#options.onUnreached === null) this.refuse(reason);
    else this.#options.onUnreached(reason);
  }

  refuse({ sipStatus, hangupCause, detail }: Refusal): void {
    this.#end(hangupCause, { type: 'leg.refused', sipStatus, hangupCause, detail });
  }

  answeredElsewhere(): void {
    this.#end('ANSWERED_ELSEWHERE', null);
  }

  hangup(cause: HangupCause): void {
    this.#end(cause, hungUp(cause, this.#state === 'answered'));
  }

  /** Shows the hold on the page. The media session decides what the browser hears. */
  hold(isHeld: boolean): void {
    if (this.#state !== 'answered') return;
    this.#isHeld = isHeld;
    for (const phone of this.#phones)
      phone.send({ type: isHeld ? 'held' : 'resumed', call_id: this.dial.call.call_id });
  }

  offerAgain(): void {}

  #lose(): void {
    if (this.#state === 'over') return;
    this.#end('NETWORK_OUT_OF_ORDER', { type: 'leg.lost', detail: 'the WebRTC worker was lost' });
  }

  #end(cause: HangupCause | 'ANSWERED_ELSEWHERE', event: LegEvent | null): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#closing.abort();
    for (const phone of [...this.#phones]) this.#leave(phone, cause);
    if (event !== null) this.#emit(event);
    this.#options.onOver();
  }

  #leave(phone: RungPhone, cause: HangupCause | 'ANSWERED_ELSEWHERE'): void {
    this.#phones.delete(phone);
    phone.leg = null;
    phone.send({ type: 'ended', call_id: this.dial.call.call_id, hangup_cause: cause });
  }

  #emit(event: LegEvent): void {
    if (!this.dial.signal.aborted) this.dial.onEvent(event);
  }
}

/** Event of a leg that its call hangs up. */
export function hungUp(cause: HangupCause, isAnswered: boolean): LegEvent {
  if (isAnswered) return { type: 'leg.ended', by: 'local', hangupCause: cause };
  return { type: 'leg.refused', sipStatus: 487, hangupCause: 'ORIGINATOR_CANCEL', detail: 'cancelled' };
}

export interface Refusal {
  sipStatus: number;
  hangupCause: HangupCause;
  detail: string;
}

export type Unreached = typeof UNREACHED | typeof BUSY;

export const UNREACHED = {
  sipStatus: 480,
  hangupCause: 'NO_USER_RESPONSE',
  detail: 'no phone of the user is connected',
} as const satisfies Refusal;
export const BUSY = {
  sipStatus: 486,
  hangupCause: 'USER_BUSY',
  detail: 'every phone of the user is in a call',
} as const satisfies Refusal;
