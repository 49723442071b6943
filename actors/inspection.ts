import type { InspectionEvent } from 'xstate';
import type { Logger } from './logger.ts';

/**
 * Logs every transition of every actor at debug level: which actor, on what event, into which state. Event payloads
 * and context stay out of the log, they may carry numbers and words of the parties.
 */
export function inspectTransitions(logger: Logger): (event: InspectionEvent) => void {
  return (event) => {
    if (event.type !== '@xstate.snapshot') return;
    const snapshot = event.snapshot as { value?: unknown; status: string };
    if (snapshot.value === undefined) return;
    logger.debug(
      { actor: event.actorRef.sessionId, event: event.event.type, state: snapshot.value, status: snapshot.status },
      'actor transition',
    );
  };
}
