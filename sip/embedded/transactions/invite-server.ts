import { header, type SipRequest, type SipResponse, tagOf } from '../../message/index.ts';
import type { Clock } from '../clock.ts';
import { giveUpMs, type SipTimers } from '../sip-timers.ts';

export interface InviteServerOptions {
  request: SipRequest;
  reliable: boolean;
  send: (response: SipResponse) => void;
  clock: Clock;
  timers: SipTimers;
  /**
   * A 2xx was retransmitted for 64 * T1 without an ACK, or for 4 * T1 if the caller of a new call has lost its
   * connection: the dialog must end (RFC 3261 §13.3.1.4, RFC 6026 §7.1).
   */
  onNotAcknowledged: () => void;
  onTerminated: () => void;
}

/**
 * INVITE server transaction (RFC 3261 §17.2.1 with RFC 6026). `proceeding` repeats its last response for a
 * retransmitted INVITE; `completed` retransmits a rejection (Timer G) until its ACK or Timer H; `confirmed` absorbs
 * ACKs for Timer I; `accepted` absorbs INVITEs for Timer L and retransmits the 2xx until `acknowledged()`, over TCP
 * too.
 */
export class InviteServerTransaction {
  readonly request: SipRequest;
  #state: 'proceeding' | 'completed' | 'confirmed' | 'accepted' | 'terminated' = 'proceeding';
  readonly #options: InviteServerOptions;
  #lastResponse: SipResponse | null = null;
  #cancelRetransmission: () => void = () => {};
  #cancelTimeout: () => void = () => {};
  #acknowledged = false;
  #isCutOff = false;

  constructor(options: InviteServerOptions) {
    this.#options = options;
    this.request = options.request;
  }

  get state(): 'proceeding' | 'completed' | 'confirmed' | 'accepted' | 'terminated' {
    return this.#state;
  }

  /** @returns false, without sending, after an earlier final response. */
  respond(response: SipResponse): boolean {
    if (this.#state !== 'proceeding') return false;
    this.#lastResponse = response;
    if (response.statusCode >= 300) this.#refuse();
    else if (response.statusCode >= 200) this.#accept();
    this.#options.send(response);
    return true;
  }

  receiveAgain(): void {
    // In `accepted` only the timer retransmits the 2xx (RFC 6026 §7.1).
    const repeats = this.#state === 'proceeding' || this.#state === 'completed';
    if (repeats && this.#lastResponse) this.#options.send(this.#lastResponse);
  }

  /** Handles an ACK with this INVITE's branch, which acknowledges a rejection. */
  receiveAck(): void {
    if (this.#state !== 'completed') return;
    this.#state = 'confirmed';
    this.#endAfter(this.#options.reliable ? 0 : this.#options.timers.t4Ms, () => this.#terminate());
  }

  /** Call for the ACK of a 2xx, which is its own transaction, matched by dialog. */
  acknowledged(): void {
    this.#acknowledged = true;
    if (this.#state === 'accepted') this.#cancelRetransmission();
  }

  transportFailed(): void {
    if (this.#state === 'completed') this.#terminate();
  }

  /**
   * Call if the last response went over a new connection, because that of the request was closed. The peer has probably
   * gone, and its NAT drops the new connection silently. If it is still there, its ACK comes soon.
   */
  connectionLost(): void {
    if (this.#state !== 'accepted' || this.#acknowledged || this.#isCutOff || !this.#isNewCall) return;
    this.#isCutOff = true;
    this.#expectAck(4 * this.#options.timers.t1Ms);
    this.#retransmitAfter(this.#options.timers.t1Ms);
  }

  /** False for a re-INVITE, whose call goes on meanwhile. */
  get #isNewCall(): boolean {
    return tagOf(header(this.request, 'to')) === null;
  }

  stop(): void {
    this.#cancelRetransmission();
    this.#cancelTimeout();
    this.#state = 'terminated';
  }

  #refuse(): void {
    this.#state = 'completed';
    this.#endAfter(giveUpMs(this.#options.timers), () => this.#terminate());
    if (!this.#options.reliable) this.#retransmitAfter(this.#options.timers.t1Ms);
  }

  #accept(): void {
    this.#state = 'accepted';
    this.#expectAck(giveUpMs(this.#options.timers));
    this.#retransmitAfter(this.#options.timers.t1Ms);
  }

  #expectAck(withinMs: number): void {
    this.#endAfter(withinMs, () => {
      if (!this.#acknowledged) this.#options.onNotAcknowledged();
      this.#terminate();
    });
  }

  #retransmitAfter(delayMs: number): void {
    const { clock, timers, send } = this.#options;
    this.#cancelRetransmission = clock.after(delayMs, () => {
      this.#retransmitAfter(Math.min(delayMs * 2, timers.t2Ms));
      if (this.#lastResponse) send(this.#lastResponse);
    });
  }

  #endAfter(delayMs: number, end: () => void): void {
    this.#cancelRetransmission();
    this.#cancelTimeout();
    this.#cancelTimeout = this.#options.clock.after(delayMs, end);
  }

  #terminate(): void {
    if (this.#state === 'terminated') return;
    this.stop();
    this.#options.onTerminated();
  }
}
