import type { CallEvent } from './call-data.ts';

const ENDS = new Set(['transfer.completed', 'transfer.failed', 'transfer.cancelled']);

/** Leg of the target while a transfer is in progress, after one more event. */
export function transferTargetAfter(target: string | null, { event, data }: Pick<CallEvent, 'event' | 'data'>) {
  if (event === 'transfer.started') return typeof data?.leg_id === 'string' ? data.leg_id : target;
  return ENDS.has(event) ? null : target;
}

export function transferTargetOf(events: readonly CallEvent[]): string | null {
  return events.reduce<string | null>(transferTargetAfter, null);
}
