import { type PublicCallEvent, presentCallEvent } from '../../actors/call-view.ts';
import type { Sql } from '../../storage/database.ts';
import { listCallEvents } from '../../storage/queries/calls.ts';

/** An event as it is shown to whoever may not know what was said. */
export function withoutWords(event: PublicCallEvent): PublicCallEvent {
  return { ...event, transcript: null };
}

/** The event log of a call as the API shows it, after a sequence. */
export async function storedEvents(
  sql: Sql,
  target: { callId: string; afterSequence?: number },
): Promise<PublicCallEvent[]> {
  return (await listCallEvents(sql, target)).map(presentCallEvent);
}
