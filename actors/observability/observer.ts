import type { ErrorCode } from '../../machines/errors.ts';
import type { LegEvent } from '../../machines/events.ts';
import type { LiveCall } from '../call-registry.ts';
import type { Logger } from '../logger.ts';

/**
 * Observes the platform for metrics and traces. The decorators of `observed-ports.ts` call it, so the ports need not
 * know of it.
 */
export interface Observer {
  /** An HTTP request places a call. Runs in its `requestScope`. Returns a listener for the outcome. */
  placementStarted(): (outcome: PlacementOutcome) => void;
  /** A call was admitted. Runs in the `requestScope` of its placement; an inbound call has none. */
  callStarted(call: LiveCall): void;
  /** An INVITE is sent or accepted, or a browser rings. Returns a listener for the leg's events. */
  legStarted(leg: ObservedLeg): (event: LegEvent) => void;
  /** A media session is opening; a call's session has the call's id. Returns a listener for its states. */
  mediaStarted(sessionId: string): (state: MediaState) => void;
  /** A final transcript of live audio arrived, `lagMs` after the end of speech. */
  utteranceRecognised(lagMs: number): void;
  /** The first audio of a synthesis request arrived, `firstByteMs` after the request. */
  speechStarted(firstByteMs: number): void;
  deliveryAttempted(delivery: ObservedDelivery): void;
}

/** `failed` is a defect without an error code. */
export type PlacementOutcome = 'placed' | 'replayed' | 'failed' | ErrorCode;

/** `refused`: could not be opened. */
export type MediaState = 'opened' | 'refused' | 'closed';

export interface ObservedLeg {
  callId: string;
  /** `agent`, `customer` or the id of a further leg. */
  leg: string;
  transport: 'sip' | 'webrtc';
  direction: 'outbound' | 'inbound';
}

export interface ObservedDelivery {
  kind: 'callback' | 'webhook';
  /** `retry`: failed, to be repeated. `failed` and `gone` are final. */
  outcome: 'delivered' | 'retry' | 'failed' | 'gone';
}

/** Combines observers. A failure of one is logged and never affects calls. */
export function combineObservers(observers: readonly Observer[], logger: Pick<Logger, 'error'>): Observer {
  const safely = <Result>(work: () => Result): Result | undefined => {
    try {
      return work();
    } catch (error) {
      logger.error({ err: error }, 'observer failed');
      return undefined;
    }
  };
  const all = (work: (observer: Observer) => void): void => {
    for (const observer of observers) safely(() => work(observer));
  };
  const listeners = <Event>(start: (observer: Observer) => (event: Event) => void) => {
    const started = observers.map((observer) => safely(() => start(observer)));
    return (event: Event): void => {
      for (const listener of started) safely(() => listener?.(event));
    };
  };
  return {
    placementStarted: () => listeners((each) => each.placementStarted()),
    callStarted: (call) => all((each) => each.callStarted(call)),
    legStarted: (leg) => listeners((each) => each.legStarted(leg)),
    mediaStarted: (sessionId) => listeners((each) => each.mediaStarted(sessionId)),
    utteranceRecognised: (lagMs) => all((each) => each.utteranceRecognised(lagMs)),
    speechStarted: (firstByteMs) => all((each) => each.speechStarted(firstByteMs)),
    deliveryAttempted: (delivery) => all((each) => each.deliveryAttempted(delivery)),
  };
}
