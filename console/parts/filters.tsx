import { Button, Group, NativeSelect, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { useUrlSearch } from '../app/url-search.ts';
import { listText } from '../text/app.ts';

interface Choice {
  /** Name in the URL query. */
  name: string;
  label: string;
  /** Label of the option that does not filter. */
  all: string;
  /** Labels by value. */
  labels: Readonly<Record<string, string>> | ReadonlyMap<string, string>;
  /** Label of a value that filters but is not among the others, such as a deleted object. */
  otherLabel?: string | undefined;
}

interface FiltersProps {
  choices: readonly Choice[];
  /** Whether to show the clear button. Default: the URL query has one of the filters, valid or not. */
  isFiltered?: boolean;
  /** Buttons after the filters. */
  children?: ReactNode;
}

/** Filters of a list, kept in the URL query: choices and a period. */
export function Filters({ choices, isFiltered, children }: FiltersProps) {
  const [search, change] = useUrlSearch();
  const names = [...choices.map(({ name }) => name), 'from', 'to'];
  return (
    <Group gap="xs" align="end" mb="sm">
      {choices.map((choice) => (
        <NativeSelect
          key={choice.name}
          size="xs"
          label={choice.label}
          value={search[choice.name] ?? ''}
          onChange={(event) => change({ [choice.name]: event.currentTarget.value })}
          data={optionsOf(choice, search[choice.name])}
        />
      ))}
      {(['from', 'to'] as const).map((name) => (
        <TextInput
          key={name}
          size="xs"
          type="date"
          label={listText[name]}
          value={search[name] ?? ''}
          onChange={(event) => change({ [name]: event.currentTarget.value })}
        />
      ))}
      {(isFiltered ?? names.some((name) => search[name] !== undefined)) && (
        <Button
          size="xs"
          variant="subtle"
          onClick={() => change(Object.fromEntries(names.map((name) => [name, undefined])))}
        >
          {listText.clear}
        </Button>
      )}
      {children}
    </Group>
  );
}

function optionsOf({ all, labels, otherLabel }: Choice, chosen = '') {
  const options = [
    { value: '', label: all },
    ...(labels instanceof Map ? [...labels] : Object.entries(labels)).map(([value, label]) => ({ value, label })),
  ];
  const isListed = options.some(({ value }) => value === chosen);
  return isListed || otherLabel === undefined ? options : [...options, { value: chosen, label: otherLabel }];
}
