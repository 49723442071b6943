import type { ErrorCode } from '../../machines/errors.ts';
import type { LegEvent } from '../../machines/events.ts';
import type { LiveCall } from '../call-registry.ts';
import type { Logger } from '../logger.ts';

/**
 * Sees what the platform does, for metrics and traces. `observed-ports.ts` calls it from decorators of the ports, so that
 * the code behind the ports knows nothing about it.
 */
export interface Observer {
  /** An HTTP request asks for a call. Runs within its `requestScope`. Returns a listener for the outcome. */
  placementStarted(): (outcome: PlacementOutcome) => void;
  /** A call was admitted. Runs within the `requestScope` of its placement; without one for a call of a peer. */
  callStarted(call: LiveCall): void;
  /** An INVITE is sent or answered, or a browser rings. Returns a listener for the events of the leg. */
  legStarted(leg: ObservedLeg): (event: LegEvent) => void;
  /** A media session is being opened; a call's has the id of the call. Returns a listener for what becomes of it. */
  mediaStarted(sessionId: string): (state: MediaState) => void;
  /** A final transcript of live audio, and how long after the end of speech it came. */
  utteranceRecognised(lagMs: number): void;
  /** The first audio of a synthesis request, and how long after the request it came. */
  speechStarted(firstByteMs: number): void;
  /** A callback or webhook was attempted. */
  deliveryAttempted(delivery: ObservedDelivery): void;
}

/** `failed`: by a defect, which has no code. */
export type PlacementOutcome = 'placed' | 'replayed' | 'failed' | ErrorCode;

/** `refused`: it could not be opened. */
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
  /** `retry`: it failed and is repeated later. `failed` and `gone` are final. */
  outcome: 'delivered' | 'retry' | 'failed' | 'gone';
}

/** One observer in place of several. A failure of one is logged; it never reaches the calls. */
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
