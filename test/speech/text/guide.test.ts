import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readScript } from '../../../speech/text/read-script.ts';
import { spokenOf } from './spoken-of.ts';

const guide = readFileSync(new URL('../../../docs/speech-text.md', import.meta.url), 'utf8');
const examples = [...guide.matchAll(/^\| ([a-z]{2}(?:-[a-z]{2})?) +\| `(.+?)` +\| (.+?) +\|$/gm)].map(
  ([, language = '', written = '', spoken = '']) => ({ language, written, spoken }),
);

describe('guide to text reading', () => {
  it('contains examples', () => {
    expect(examples.length).toBeGreaterThan(20);
  });

  it.each(examples)('shows how $written is read in $language', ({ language, written, spoken }) => {
    expect(spokenOf(written, language)).toBe(spoken);
  });

  it('shows valid SSML', () => {
    const ssml = /```xml\n([\s\S]+?)```/.exec(guide)![1]!;
    const { clauses } = readScript(ssml, { language: 'en-us' });
    expect(clauses.map(({ pauseAfterMs, prosody: { rate } }) => [pauseAfterMs, rate])).toEqual([
      [500, 1],
      [0, 0.75],
    ]);
  });

  it('lists the elements that an error lists', () => {
    const allowed = [
      ...['speak', 'p', 's', 'break', 'say-as', 'prosody', 'emphasis', 'phoneme', 'sub'],
      ...['mark', 'lang', 'voice'],
    ];
    for (const element of allowed) expect(guide).toContain(`\`${element}\``);
    expect(() => readScript('<speak><x/></speak>', { language: 'en' })).toThrow(
      `${allowed.slice(0, -1).join(', ')} and voice`,
    );
  });
});
