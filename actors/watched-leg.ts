import type { LegEvent, RemoteMedia } from '../machines/events.ts';
import type { Clock } from '../runtime/clock.ts';
import { LATE, within } from '../runtime/waiting.ts';
import type { LegDialog } from '../sip/sip-gateway.ts';

export type UnansweredReason = 'not_answered' | 'busy' | 'refused' | 'interrupted';
type Answer = { media: RemoteMedia } | { failure: UnansweredReason };

/** Exposes the events of a leg outside any call as promises. */
export class WatchedLeg {
  dialog: LegDialog | null = null;
  /** Called when the peer of an answered leg changes its media address. */
  onMedia: (media: RemoteMedia) => void = () => undefined;
  readonly #answer = Promise.withResolvers<Answer>();
  readonly #over = Promise.withResolvers<void>();
  readonly #onDigit: (digit: string) => void;

  /** @param onDigit receives DTMF digits from INFO requests */
  constructor(onDigit: (digit: string) => void = () => undefined) {
    this.#onDigit = onDigit;
  }

  /** Resolves whatever ended the leg. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  readonly take = (event: LegEvent): void => {
    if (event.type === 'leg.answered') this.#answer.resolve({ media: event.media });
    else if (event.type === 'leg.media') this.onMedia(event.media);
    else if (event.type === 'leg.pressed') this.#onDigit(event.digit);
    else if (event.type === 'leg.refused') this.#end(reasonOf(event.sipStatus));
    else if (event.type === 'leg.ended' || event.type === 'leg.lost') this.#end('interrupted');
  };

  /** Call it if the leg could not be dialed. */
  readonly fail = (): void => this.#end('refused');

  /** @throws the signal's reason */
  async answered({ ms, clock, signal }: { ms: number; clock: Clock; signal: AbortSignal }): Promise<Answer> {
    const answer = await within(this.#answer.promise, { ms, clock, signal });
    return answer === LATE ? { failure: 'not_answered' } : answer;
  }

  #end(failure: UnansweredReason): void {
    this.#answer.resolve({ failure });
    this.#over.resolve();
  }
}

/** 600 and 603 are refusals by the callee (RFC 3261 §21.6). */
function reasonOf(sipStatus: number): UnansweredReason {
  if (sipStatus === 486 || sipStatus === 600) return 'busy';
  return sipStatus === 408 || sipStatus === 480 || sipStatus === 487 ? 'not_answered' : 'refused';
}
