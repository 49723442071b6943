import type { CallEvent } from './call-data.ts';

const ENDS = new Set(['transfer.completed', 'transfer.failed', 'transfer.cancelled']);

/** Leg of the target while a transfer is in progress, after one more event. Undefined: unknown. */
export function transferTargetAfter<Before extends null | undefined>(
  target: string | Before,
  { event, data }: Pick<CallEvent, 'event' | 'data'>,
): string | Before | null {
  if (event === 'transfer.started') return typeof data?.leg_id === 'string' ? data.leg_id : target;
  return ENDS.has(event) ? null : target;
}

export function transferTargetOf(events: readonly CallEvent[]): string | null {
  return events.reduce<string | null>((target, event) => transferTargetAfter(target, event), null);
}
