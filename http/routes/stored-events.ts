import { type PublicCallEvent, presentCallEvent } from '../../actors/call-view.ts';
import type { Sql } from '../../storage/database.ts';
import { listCallEvents } from '../../storage/queries/calls.ts';

export function withoutTranscript(event: PublicCallEvent): PublicCallEvent {
  return { ...event, transcript: null };
}

export async function storedEvents(
  sql: Sql,
  target: { callId: string; afterSequence?: number },
): Promise<PublicCallEvent[]> {
  return (await listCallEvents(sql, target)).map(presentCallEvent);
}
