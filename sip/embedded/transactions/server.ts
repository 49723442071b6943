import type { SipRequest, SipResponse } from '../../message/index.ts';
import type { Clock } from '../clock.ts';
import { giveUpMs, type SipTimers } from '../sip-timers.ts';

export interface ServerOptions {
  request: SipRequest;
  reliable: boolean;
  send: (response: SipResponse) => void;
  clock: Clock;
  timers: SipTimers;
  onTerminated: () => void;
}

/**
 * Server transaction of everything but INVITE and ACK (RFC 3261 §17.2.2). Retransmitted requests get the last response
 * again; `completed` lasts for Timer J. An unanswered request is dropped when its client must have timed out.
 */
export class ServerTransaction {
  readonly request: SipRequest;
  #state: 'trying' | 'proceeding' | 'completed' | 'terminated' = 'trying';
  readonly #options: ServerOptions;
  #lastResponse: SipResponse | null = null;
  #cancelTimeout: () => void;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.request = options.request;
    this.#cancelTimeout = options.clock.after(2 * giveUpMs(options.timers), () => this.#terminate());
  }

  get state(): 'trying' | 'proceeding' | 'completed' | 'terminated' {
    return this.#state;
  }

  /** @returns false, without sending, after an earlier final response. */
  respond(response: SipResponse): boolean {
    if (this.#state === 'completed' || this.#state === 'terminated') return false;
    this.#lastResponse = response;
    if (response.statusCode < 200) this.#state = 'proceeding';
    else {
      const { clock, timers, reliable } = this.#options;
      this.#state = 'completed';
      this.#cancelTimeout();
      this.#cancelTimeout = clock.after(reliable ? 0 : giveUpMs(timers), () => this.#terminate());
    }
    this.#options.send(response);
    return true;
  }

  receiveAgain(): void {
    if (this.#lastResponse) this.#options.send(this.#lastResponse);
  }

  transportFailed(): void {
    this.#terminate();
  }

  stop(): void {
    this.#cancelTimeout();
    this.#state = 'terminated';
  }

  #terminate(): void {
    if (this.#state === 'terminated') return;
    this.stop();
    this.#options.onTerminated();
  }
}
