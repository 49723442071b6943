import { SegmentedControl } from '@mantine/core';
import { liveText } from '../text/live.ts';
import type { LiveEntry } from './live-state.ts';

/** Filters of the live calls, by the value in the address. */
export const LIVE_FILTERS = {
  all: { label: liveText.all, includes: () => true },
  talking: { label: liveText.talking, includes: ({ call }: LiveEntry) => call.state === 'bridged' },
  dialing: { label: liveText.dialing, includes: ({ call }: LiveEntry) => call.state === 'initiated' },
  waiting: { label: liveText.waiting, includes: ({ call }: LiveEntry) => call.state === 'pending' },
};

export type LiveFilter = keyof typeof LIVE_FILTERS;

export function liveFilterOf(text: string | undefined): LiveFilter {
  return text !== undefined && Object.hasOwn(LIVE_FILTERS, text) ? (text as LiveFilter) : 'all';
}

interface StateFilterProps {
  entries: readonly LiveEntry[];
  value: LiveFilter;
  onChange: (filter: LiveFilter) => void;
}

/** How many calls are in each state; choosing one shows only those. */
export function StateFilter({ entries, value, onChange }: StateFilterProps) {
  const data = Object.entries(LIVE_FILTERS).map(([filter, { label, includes }]) => ({
    value: filter,
    label: `${label} ${entries.filter(includes).length}`,
  }));
  return (
    <SegmentedControl
      size="xs"
      aria-label={liveText.filter}
      data={data}
      value={value}
      onChange={(filter) => onChange(liveFilterOf(filter))}
    />
  );
}
