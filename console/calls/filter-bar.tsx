import { ActionIcon, Button, Group, NativeSelect, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { Search, X } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { UrlSearch } from '../app/url-search.ts';
import { directionText, outcomeText } from '../text/call-words.ts';
import { callsText } from '../text/calls.ts';
import { DIRECTIONS, FILTER_NAMES, hasFilters, PERIOD_DAYS, STATES } from './filters.ts';

const SEARCH_AFTER_MS = 300;

interface FilterBarProps {
  search: UrlSearch;
  change: (changes: UrlSearch) => void;
}

/** Search and filters, kept in the address. */
export function FilterBar({ search, change }: FilterBarProps) {
  const isCustom = search.period === undefined && (search.from !== undefined || search.to !== undefined);
  const [wantsDates, setWantsDates] = useState(isCustom);
  const period = wantsDates || isCustom ? 'custom' : (search.period ?? '');
  const choosePeriod = (value: string) => {
    setWantsDates(value === 'custom');
    change({ period: value === 'custom' ? undefined : value, from: undefined, to: undefined });
  };
  return (
    <Group gap="xs" align="flex-end" role="search" aria-label={callsText.search}>
      <SearchField value={search.q ?? ''} onChange={(q) => change({ q })} />
      <NativeSelect
        aria-label={callsText.state}
        value={search.state ?? ''}
        onChange={({ currentTarget }) => change({ state: currentTarget.value })}
        data={[
          { value: '', label: callsText.anyState },
          ...STATES.map((value) => ({ value, label: outcomeText[value] })),
        ]}
      />
      <NativeSelect
        aria-label={callsText.direction}
        value={search.direction ?? ''}
        onChange={({ currentTarget }) => change({ direction: currentTarget.value })}
        data={[
          { value: '', label: callsText.anyDirection },
          ...DIRECTIONS.map((value) => ({ value, label: directionText[value] })),
        ]}
      />
      <NativeSelect
        aria-label={callsText.period}
        value={period}
        onChange={({ currentTarget }) => choosePeriod(currentTarget.value)}
        data={[
          { value: '', label: callsText.anyPeriod },
          ...Object.entries(PERIOD_DAYS).map(([value, days]) => ({
            value,
            label: days === 1 ? callsText.today : callsText.days(days),
          })),
          { value: 'custom', label: callsText.custom },
        ]}
      />
      {period === 'custom' && (
        <>
          <DateField label={callsText.from} value={search.from} onChange={(from) => change({ from })} />
          <DateField label={callsText.to} value={search.to} onChange={(to) => change({ to })} />
        </>
      )}
      {hasFilters(search) && (
        <Button
          variant="subtle"
          onClick={() => {
            setWantsDates(false);
            change(Object.fromEntries(FILTER_NAMES.map((name) => [name, undefined])));
          }}
        >
          {callsText.clearFilters}
        </Button>
      )}
    </Group>
  );
}

function SearchField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const [text, setText] = useState(value);
  const later = useDebouncedCallback(onChange, SEARCH_AFTER_MS);
  useEffect(() => setText(value), [value]);
  const type = (typed: string) => {
    setText(typed);
    later(typed);
  };
  return (
    <TextInput
      type="search"
      aria-label={callsText.search}
      placeholder={callsText.search}
      value={text}
      onChange={({ currentTarget }) => type(currentTarget.value)}
      leftSection={<Search size={15} aria-hidden />}
      rightSection={
        text !== '' && (
          <ActionIcon
            variant="subtle"
            color="gray"
            size="sm"
            aria-label={callsText.clearSearch}
            onClick={() => {
              later.cancel();
              setText('');
              onChange('');
            }}
          >
            <X size={14} />
          </ActionIcon>
        )
      }
      flex="1 1 240px"
      maw={420}
    />
  );
}

interface DateFieldProps {
  label: string;
  value: string | undefined;
  onChange: (value: string) => void;
}

function DateField({ label, value, onChange }: DateFieldProps) {
  return (
    <TextInput
      type="date"
      aria-label={label}
      value={value ?? ''}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  );
}
