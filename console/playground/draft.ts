import { useState } from 'react';

const drafts = new Map<string, unknown>();

/**
 * State that survives a switch to another tab of the playground. It lasts until the page closes and is stored nowhere.
 */
export function useDraft<T>(name: string, initial: T): [T, (value: T) => void] {
  const [value, setValue] = useState(() => (drafts.has(name) ? (drafts.get(name) as T) : initial));
  const change = (next: T) => {
    drafts.set(name, next);
    setValue(next);
  };
  return [value, change];
}
