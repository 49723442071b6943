import { type PublicCallEvent, presentCallEvent } from '../../actors/call-view.ts';
import type { Sql } from '../../storage/database.ts';
import { listCallEvents } from '../../storage/queries/calls.ts';

/** Hides the transcript from users who may not read it. */
export function withoutTranscript(event: PublicCallEvent): PublicCallEvent {
  return { ...event, transcript: null };
}

/** Returns the event log of a call in the format of the API, after a sequence. */
export async function storedEvents(
  sql: Sql,
  target: { callId: string; afterSequence?: number },
): Promise<PublicCallEvent[]> {
  return (await listCallEvents(sql, target)).map(presentCallEvent);
}
