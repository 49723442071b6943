import { useEffect, useReducer, useRef } from 'react';
import { LiveSession, type LiveSettings, type Phase } from './live-session.ts';
import { EMPTY_TRANSCRIPT, type SocketMessage, type Transcript, withMessage } from './transcript.ts';

export interface LiveState {
  phase: Phase;
  transcript: Transcript;
  failure: Error | null;
}

type LiveEvent =
  | { type: 'phase'; phase: Phase }
  | { type: 'message'; message: SocketMessage }
  | { type: 'failure'; failure: Error };

const IDLE: LiveState = { phase: 'idle', transcript: EMPTY_TRANSCRIPT, failure: null };

/** The live session of a component. Ends when it unmounts. */
export function useLiveSession() {
  const [state, dispatch] = useReducer(reduce, IDLE);
  const session = useRef<LiveSession | null>(null);
  const meter = useRef<HTMLDivElement>(null);
  useEffect(() => () => session.current?.close(), []);

  const start = (settings: LiveSettings) => {
    session.current?.close();
    session.current = new LiveSession(settings, {
      onPhase: (phase) => dispatch({ type: 'phase', phase }),
      onMessage: (message) => dispatch({ type: 'message', message }),
      onFailure: (failure) => dispatch({ type: 'failure', failure }),
      onLevel: (level) => show(meter.current, level),
    });
  };
  return { state, meter, start, stop: () => session.current?.stop() };
}

function reduce(state: LiveState, event: LiveEvent): LiveState {
  switch (event.type) {
    case 'phase':
      return event.phase === 'asking' ? { ...IDLE, phase: 'asking' } : { ...state, phase: event.phase };
    case 'message':
      return { ...state, transcript: withMessage(state.transcript, event.message) };
    case 'failure':
      return { ...state, failure: event.failure };
  }
}

/** Outside of React, because it changes seventeen times a second. */
function show(meter: HTMLDivElement | null, level: number): void {
  if (meter === null) return;
  meter.setAttribute('aria-valuenow', String(Math.round(100 * level)));
  (meter.firstElementChild as HTMLElement).style.transform = `scaleX(${level.toFixed(3)})`;
}
