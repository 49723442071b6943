import { hashKey } from '@tanstack/react-query';
import { useState } from 'react';

/** The fields that differ from the shown ones. A form that sends only these keeps what others changed meanwhile. */
export function changedFields<T extends object>(fields: T, shown: Readonly<Record<keyof T, unknown>>): Partial<T> {
  const names = Object.keys(fields) as (keyof T)[];
  const changed = names.filter((name) => hashKey([fields[name]]) !== hashKey([shown[name]]));
  return Object.fromEntries(changed.map((name) => [name, fields[name]])) as Partial<T>;
}

/** The value that an open dialog began with, because its form keeps showing that one when the value changes. */
export function useAsOpened<T>(value: T, isOpen: boolean): T {
  const [opened, setOpened] = useState(value);
  if (!isOpen && opened !== value) setOpened(value);
  return opened;
}
