import type { SipRequest, SipResponse } from '../../message/index.ts';
import type { Clock } from '../clock.ts';
import { giveUpMs, type SipTimers } from '../sip-timers.ts';
import { acknowledgeFailure } from './hop-requests.ts';

export type InviteClientState = 'calling' | 'proceeding' | 'accepted' | 'completed' | 'terminated';

export interface InviteClientOptions {
  request: SipRequest;
  /** True over TCP: no retransmission. */
  reliable: boolean;
  send: (request: SipRequest) => void;
  clock: Clock;
  timers: SipTimers;
  /**
   * Receives 100 too, and every 2xx, including retransmitted ones (RFC 6026), which the owner acknowledges. Any other
   * final response only once.
   */
  onResponse: (response: SipResponse) => void;
  /** Called last, without a final response: Timer B, or a failed transport. */
  onFailure: (why: 'timeout' | 'transport') => void;
  /** The first 1xx arrived, so a CANCEL may be sent (RFC 3261 §9.1). */
  onCancellable: () => void;
  onTerminated: () => void;
}

/**
 * INVITE client transaction (RFC 3261 §17.1.1 with RFC 6026). `calling` retransmits the INVITE (Timer A) until a
 * response or Timer B; `proceeding` waits without limit; `accepted` takes 2xx responses for Timer M; `completed`
 * acknowledges retransmitted rejections for Timer D.
 */
export class InviteClientTransaction {
  readonly request: SipRequest;
  #state: InviteClientState = 'calling';
  readonly #options: InviteClientOptions;
  #cancelRetransmission: () => void = () => {};
  #cancelTimeout: () => void = () => {};
  #acknowledgement: SipRequest | null = null;

  constructor(options: InviteClientOptions) {
    this.#options = options;
    this.request = options.request;
  }

  get state(): InviteClientState {
    return this.#state;
  }

  start(): void {
    const { clock, timers, reliable } = this.#options;
    this.#cancelTimeout = clock.after(timers.inviteTimeoutMs, () => this.#fail('timeout'));
    if (!reliable) this.#retransmitAfter(timers.t1Ms);
    this.#options.send(this.request);
  }

  receive(response: SipResponse): void {
    if (this.#state === 'terminated') return;
    const { statusCode } = response;
    if (statusCode < 200) this.#receiveProvisional(response);
    else if (statusCode < 300) this.#receiveSuccess(response);
    else this.#receiveRefusal(response);
  }

  /** The request could not be sent, or was returned by the network. */
  transportFailed(): void {
    if (this.#state === 'calling' || this.#state === 'proceeding') this.#fail('transport');
    else if (this.#state === 'completed') this.#terminate();
  }

  /** After a CANCEL, waits 64 * T1 for the 487 (RFC 3261 §9.1). */
  expectEnd(): void {
    if (this.#state !== 'proceeding') return;
    this.#cancelTimeout();
    this.#cancelTimeout = this.#options.clock.after(giveUpMs(this.#options.timers), () => this.#fail('timeout'));
  }

  stop(): void {
    this.#cancelRetransmission();
    this.#cancelTimeout();
    this.#state = 'terminated';
  }

  #receiveProvisional(response: SipResponse): void {
    if (this.#state !== 'calling' && this.#state !== 'proceeding') return;
    const first = this.#state === 'calling';
    if (first) {
      this.#state = 'proceeding';
      this.#cancelRetransmission();
      this.#cancelTimeout();
    }
    this.#options.onResponse(response);
    if (first && this.#state === 'proceeding') this.#options.onCancellable();
  }

  #receiveSuccess(response: SipResponse): void {
    if (this.#state === 'completed') return;
    if (this.#state !== 'accepted') {
      this.#state = 'accepted';
      this.#endAfter(giveUpMs(this.#options.timers));
    }
    this.#options.onResponse(response);
  }

  #receiveRefusal(response: SipResponse): void {
    if (this.#state === 'accepted') return;
    if (this.#state === 'completed') {
      if (this.#acknowledgement) this.#options.send(this.#acknowledgement);
      return;
    }
    this.#state = 'completed';
    this.#acknowledgement = acknowledgeFailure(this.request, response);
    this.#options.send(this.#acknowledgement);
    this.#endAfter(this.#options.reliable ? 0 : this.#options.timers.timerDMs);
    this.#options.onResponse(response);
  }

  #retransmitAfter(delayMs: number): void {
    this.#cancelRetransmission = this.#options.clock.after(delayMs, () => {
      this.#retransmitAfter(delayMs * 2);
      this.#options.send(this.request);
    });
  }

  #endAfter(delayMs: number): void {
    this.#cancelRetransmission();
    this.#cancelTimeout();
    this.#cancelTimeout = this.#options.clock.after(delayMs, () => this.#terminate());
  }

  #fail(why: 'timeout' | 'transport'): void {
    this.#terminate();
    this.#options.onFailure(why);
  }

  #terminate(): void {
    if (this.#state === 'terminated') return;
    this.stop();
    this.#options.onTerminated();
  }
}
