import type { Clock } from '../../runtime/clock.ts';
import type { BrowserLeg, RungPhone } from './browser-leg.ts';
import type { PhoneHolder, PhoneNotice, PhoneOutlet } from './phone-desk.ts';

/** Longest that a phone may be without a socket. */
const GRACE_MS = 10_000;

/** A user's browser, connected over successive sockets. */
export class Phone implements RungPhone {
  readonly holder: PhoneHolder;
  /** Leg that rings on it, or that it has answered. */
  leg: BrowserLeg | null = null;
  resumeToken = '';
  readonly #clock: Clock;
  readonly #onGone: () => void;
  #outlet: PhoneOutlet | null = null;
  #grace: unknown = null;

  constructor({ holder, clock, onGone }: { holder: PhoneHolder; clock: Clock; onGone: () => void }) {
    this.holder = holder;
    this.#clock = clock;
    this.#onGone = onGone;
  }

  attach(outlet: PhoneOutlet, resumeToken: string): void {
    this.#clock.clearTimeout(this.#grace);
    this.#outlet?.close(4001, 'REPLACED');
    this.#outlet = outlet;
    this.resumeToken = resumeToken;
    const call = this.leg?.call ?? null;
    this.send({ type: 'welcome', resume_token: resumeToken, purpose: this.holder.purpose, call });
  }

  /** Ignores a socket that another one has replaced. */
  detach(outlet: PhoneOutlet): void {
    if (outlet !== this.#outlet) return;
    this.#outlet = null;
    this.#grace = this.#clock.setTimeout(() => this.#onGone(), GRACE_MS);
  }

  /** Drops notices without a socket, because the next socket gets the current state. */
  send(notice: PhoneNotice): void {
    this.#outlet?.send(notice);
  }

  close(): void {
    this.#clock.clearTimeout(this.#grace);
    this.#outlet = null;
  }
}
