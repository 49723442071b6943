import { describe, expect, it } from 'vitest';
import { byRules } from './by-rules.ts';
import { EXAMPLES } from './examples.ts';

describe.each(EXAMPLES)('$name', (group) => {
  it.each(group.rows)('makes of %j: %j', (before, after) => {
    expect(byRules(before, group)).toBe(after);
  });

  it.each(group.rows)('leaves what it made of %j as it is', (_, after) => {
    expect(byRules(after, group)).toBe(after);
  });
});
