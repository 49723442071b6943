import { describe, expect, it } from 'vitest';
import { byRules } from './by-rules.ts';
import { EXAMPLES } from './examples.ts';

describe.each(EXAMPLES)('$name', (group) => {
  it.each(group.rows)('corrects %j to %j', (before, after) => {
    expect(byRules(before, group)).toBe(after);
  });

  it.each(group.rows)('does not change its result %j', (_, after) => {
    expect(byRules(after, group)).toBe(after);
  });
});
