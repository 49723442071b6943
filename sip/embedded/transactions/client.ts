import type { SipRequest, SipResponse } from '../../message/index.ts';
import type { Clock } from '../clock.ts';
import { giveUpMs, type SipTimers } from '../sip-timers.ts';

export interface ClientOptions {
  request: SipRequest;
  reliable: boolean;
  send: (request: SipRequest) => void;
  clock: Clock;
  timers: SipTimers;
  /** Receives provisional responses, then one final one. */
  onResponse: (response: SipResponse) => void;
  onFailure: (why: 'timeout' | 'transport') => void;
  onTerminated: () => void;
}

/**
 * Client transaction of everything but INVITE and ACK (RFC 3261 §17.1.2). `trying` and `proceeding` retransmit the
 * request (Timer E) until a final response or Timer F; `completed` absorbs retransmitted responses for Timer K.
 */
export class ClientTransaction {
  readonly request: SipRequest;
  #state: 'trying' | 'proceeding' | 'completed' | 'terminated' = 'trying';
  readonly #options: ClientOptions;
  #cancelRetransmission: () => void = () => {};
  #cancelTimeout: () => void = () => {};

  constructor(options: ClientOptions) {
    this.#options = options;
    this.request = options.request;
  }

  get state(): 'trying' | 'proceeding' | 'completed' | 'terminated' {
    return this.#state;
  }

  start(): void {
    const { clock, timers, reliable } = this.#options;
    this.#cancelTimeout = clock.after(giveUpMs(timers), () => this.#fail('timeout'));
    if (!reliable) this.#retransmitAfter(timers.t1Ms);
    this.#options.send(this.request);
  }

  receive(response: SipResponse): void {
    if (this.#state === 'completed' || this.#state === 'terminated') return;
    if (response.statusCode < 200) this.#state = 'proceeding';
    else {
      const { clock, timers, reliable } = this.#options;
      this.#state = 'completed';
      this.#cancelRetransmission();
      this.#cancelTimeout();
      this.#cancelTimeout = clock.after(reliable ? 0 : timers.t4Ms, () => this.#terminate());
    }
    this.#options.onResponse(response);
  }

  transportFailed(): void {
    if (this.#state === 'trying' || this.#state === 'proceeding') this.#fail('transport');
  }

  stop(): void {
    this.#cancelRetransmission();
    this.#cancelTimeout();
    this.#state = 'terminated';
  }

  #retransmitAfter(delayMs: number): void {
    const { clock, timers } = this.#options;
    this.#cancelRetransmission = clock.after(delayMs, () => {
      this.#retransmitAfter(this.#state === 'proceeding' ? timers.t2Ms : Math.min(delayMs * 2, timers.t2Ms));
      this.#options.send(this.request);
    });
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
