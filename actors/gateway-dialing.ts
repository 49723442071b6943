import type { HangupCause, LegEvent } from '../machines/events.ts';
import type { Clock } from '../runtime/clock.ts';
import type { LegDialog, NextHop, TrunkSign } from '../sip/sip-gateway.ts';
import type { Gateway } from '../storage/queries/trunk-gateways.ts';

export interface GatewayChoice {
  gateway: Gateway;
  /** Receives what the INVITE reveals about the gateway's health. */
  onSign: (sign: TrunkSign) => void;
  /** Sends OPTIONS to one address of the gateway. True if the gateway used to respond and this address does not. */
  isGone: (hop: NextHop) => Promise<boolean>;
}

export interface GatewayDialingOptions {
  /** At least one, in the order to try. */
  choices: readonly GatewayChoice[];
  /** Resolves the addresses of a gateway, in the order to try. @throws if the gateway must not be dialed */
  locate: (gateway: Gateway) => Promise<readonly NextHop[]>;
  /** Sends an INVITE to one address. Null if the leg was hung up meanwhile. @throws if it cannot be dialed */
  dial: (attempt: {
    gateway: Gateway;
    hop: NextHop;
    /** Aborted when another address takes over. */
    given: AbortSignal;
    onEvent: (event: LegEvent) => void;
    onSign: (sign: TrunkSign) => void;
  }) => Promise<LegDialog | null>;
  /** Whether another gateway may be tried: false once our own SIP server is lost. */
  mayTryNext: () => boolean;
  onEvent: (event: LegEvent) => void;
  /** Called with the last error if no gateway could be dialed. */
  onError: (error: unknown) => void;
  clock: Clock;
}

/** Timeout or overload: another gateway may accept the call. */
const PASSED_ON: ReadonlySet<number> = new Set([408, 503]);
/**
 * Silence after which OPTIONS checks the gateway. An INVITE over UDP times out only after 32 s (RFC 3261 §17.1.1.2),
 * and a live gateway may take long to ring.
 */
const SILENCE_MS = 3_000;

/**
 * Dials the addresses of a trunk's gateways one after the other until one accepts the call (RFC 3263 §4.3). It stops
 * trying once the callee rings, because a second INVITE would ring twice.
 */
export class GatewayDialing implements LegDialog {
  readonly #options: GatewayDialingOptions;
  #current: LegDialog | null = null;
  #hangup: HangupCause | null = null;

  constructor(options: GatewayDialingOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#tryGateway(0);
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

  async #tryGateway(index: number): Promise<void> {
    const { choices, locate, onError } = this.#options;
    try {
      const hops = await locate(choices[index]!.gateway);
      if (hops.length === 0) throw new UnresolvedHostError();
      void this.#tryHop({ index, hops, at: 0 });
    } catch (error) {
      if (this.#mayGoOn() && index + 1 < choices.length) void this.#tryGateway(index + 1);
      else onError(error);
    }
  }

  async #tryHop({ index, hops, at }: HopPosition): Promise<void> {
    const { choices, dial, onEvent, onError, clock } = this.#options;
    const { gateway, onSign, isGone } = choices[index]!;
    const hop = hops[at]!;
    const isLastHop = at + 1 === hops.length;
    const isLast = isLastHop && index + 1 === choices.length;
    const given = new AbortController();
    let hasSign = false;
    let hasRung = false;
    const mayPassOn = () => !isLast && !hasRung && !given.signal.aborted && this.#mayGoOn();
    const passOn = () => {
      clock.clearTimeout(timer);
      given.abort();
      if (isLastHop) void this.#tryGateway(index + 1);
      else void this.#tryHop({ index, hops, at: at + 1 });
    };
    const askWhenSilent = async () => {
      if (hasSign || !mayPassOn()) return;
      if ((await isGone(hop)) && !hasSign && mayPassOn()) passOn();
    };
    const timer = isLast ? null : clock.setTimeout(() => void askWhenSilent(), SILENCE_MS);
    try {
      const dialog = await dial({
        gateway,
        hop,
        given: given.signal,
        onSign: (sign) => {
          hasSign = true;
          // Another address of the gateway may respond.
          if (sign.type === 'answered' || isLastHop || !mayPassOn()) onSign(sign);
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
      // Another address may have taken over already.
      if (!given.signal.aborted) this.#current = dialog;
      if (this.#hangup !== null) this.#current?.hangup(this.#hangup);
    } catch (error) {
      clock.clearTimeout(timer);
      if (given.signal.aborted) return;
      if (mayPassOn()) passOn();
      else onError(error);
    }
  }

  #mayGoOn(): boolean {
    return this.#hangup === null && this.#options.mayTryNext();
  }
}

export class UnresolvedHostError extends Error {
  override readonly name = 'UnresolvedHostError';

  constructor() {
    super('the host of the trunk cannot be resolved');
  }
}

interface HopPosition {
  index: number;
  hops: readonly NextHop[];
  at: number;
}
