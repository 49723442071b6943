import type { InspectionEvent } from 'xstate';
import type { Logger } from './logger.ts';

/**
 * Logs every transition at debug level: actor, event type and new state. Payloads and context may contain numbers and
 * speech, so they are not logged.
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
