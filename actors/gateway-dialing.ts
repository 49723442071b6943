import type { HangupCause, LegEvent } from '../machines/events.ts';
import type { Clock } from '../runtime/clock.ts';
import type { LegDialog, TrunkSign } from '../sip/sip-gateway.ts';
import type { Gateway } from '../storage/queries/trunk-gateways.ts';

/** A gateway to try, and who learns what the INVITE shows of it. */
export interface GatewayChoice {
  gateway: Gateway;
  onSign: (sign: TrunkSign) => void;
  /** Asks it with OPTIONS: true when it used to answer them and does not now. */
  isGone: () => Promise<boolean>;
}

export interface GatewayDialingOptions {
  /** In the order to try them. At least one. */
  choices: readonly GatewayChoice[];
  /** Sends an INVITE over one gateway. @throws when that gateway cannot be dialed. */
  dial: (attempt: {
    gateway: Gateway;
    /** Aborted when another gateway takes over. */
    given: AbortSignal;
    onEvent: (event: LegEvent) => void;
    onSign: (sign: TrunkSign) => void;
  }) => Promise<LegDialog | null>;
  /** Whether another gateway may be tried: not once our own SIP server is gone. */
  mayTryNext: () => boolean;
  onEvent: (event: LegEvent) => void;
  /** No gateway could be dialed: why the last one could not. */
  onError: (error: unknown) => void;
  clock: Clock;
}

/** The request timed out, or the gateway is overloaded, gone or cannot be resolved: another one may do better. */
const PASSED_ON: ReadonlySet<number> = new Set([408, 503]);
/**
 * Without a response by then the gateway is asked whether it is there at all. An INVITE over UDP times out only after 32 s
 * (RFC 3261 §17.1.1.2), and a gateway that is there may take long to ring.
 */
const SILENCE_MS = 3_000;

/**
 * Dials over the gateways of a trunk, one after the other, until one takes the call (RFC 3263 §4.3). Only before the
 * callee rings: afterwards a second INVITE would ring twice.
 */
export class GatewayDialing implements LegDialog {
  readonly #options: GatewayDialingOptions;
  #current: LegDialog | null = null;
  #hangup: HangupCause | null = null;

  constructor(options: GatewayDialingOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#try(0);
  }

  hangup(cause: HangupCause): void {
    this.#hangup = cause;
    this.#current?.hangup(cause);
  }

  hold(isHeld: boolean): void {
    this.#current?.hold(isHeld);
  }

  offerAgain(): void {
    this.#current?.offerAgain();
  }

  async #try(index: number): Promise<void> {
    const { choices, dial, onEvent, onError, clock } = this.#options;
    const { gateway, onSign, isGone } = choices[index]!;
    const given = new AbortController();
    let hasSign = false;
    let hasRung = false;
    const mayPassOn = () =>
      !hasRung &&
      !given.signal.aborted &&
      this.#hangup === null &&
      index + 1 < choices.length &&
      this.#options.mayTryNext();
    const passOn = () => {
      clock.clearTimeout(timer);
      given.abort();
      void this.#try(index + 1);
    };
    const askWhenSilent = async () => {
      if (hasSign || !mayPassOn()) return;
      if ((await isGone()) && !hasSign && mayPassOn()) passOn();
    };
    const timer = index + 1 < choices.length ? clock.setTimeout(() => void askWhenSilent(), SILENCE_MS) : null;
    try {
      const dialog = await dial({
        gateway,
        given: given.signal,
        onSign: (sign) => {
          hasSign = true;
          onSign(sign);
        },
        onEvent: (event) => {
          if (given.signal.aborted) return;
          hasRung ||= event.type === 'leg.ringing' || event.type === 'leg.answered';
          if (event.type === 'leg.refused' && PASSED_ON.has(event.sipStatus) && mayPassOn()) {
            passOn();
            return;
          }
          if (event.type !== 'leg.ringing') clock.clearTimeout(timer);
          onEvent(event);
        },
      });
      // Another gateway may have taken over while this one's address was looked up.
      if (!given.signal.aborted) this.#current = dialog;
      if (this.#hangup !== null) this.#current?.hangup(this.#hangup);
    } catch (error) {
      clock.clearTimeout(timer);
      if (given.signal.aborted) return;
      if (mayPassOn()) passOn();
      else onError(error);
    }
  }
}
