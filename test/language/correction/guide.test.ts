import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { RULES_MODEL } from '../../../language/correction/rules/correct-by-rules.ts';
import type { AppContext, CorrectionStyle } from '../../../language/correction/text-correction.ts';
import { byRules } from './by-rules.ts';

const guide = readFileSync(new URL('../../../docs/text-correction.md', import.meta.url), 'utf8');
const examples = [...guide.matchAll(/^\| ([A-Za-z, ]+?) +\| `(.+?)` +\| `(.+?)` +\|$/gm)].map(
  ([, asked = '', written = '', corrected = '']) => ({ asked, written, corrected }),
);
const entries = [...guide.matchAll(/^\| `(.+?)` +\| (?:`(.+?)`)? +\| `(.+?)` +\| `(.+?)` +\|$/gm)].map(
  ([, term = '', replacement = '', written = '', corrected = '']) => ({ term, replacement, written, corrected }),
);

const CONTEXTS: readonly AppContext[] = ['email', 'chat', 'document', 'message', 'social'];

function parseOptions(asked: string): { style: Partial<CorrectionStyle>; appContext: AppContext | null } {
  const wanted = new Set(asked.split(', '));
  const appContext = CONTEXTS.find((context) => wanted.has(context)) ?? null;
  return {
    appContext,
    style: {
      tone: wanted.has('professional') ? 'professional' : null,
      autoCapitalize: wanted.has('autoCapitalize'),
      autoPunctuate: wanted.has('autoPunctuate'),
      useContractions: wanted.has('contract') ? true : wanted.has('expand') ? false : null,
      expandAbbreviations: wanted.has('expandAbbreviations'),
    },
  };
}

describe('guide to text correction', () => {
  it('contains examples', () => {
    expect(examples.length).toBeGreaterThan(15);
    expect(entries.length).toBeGreaterThan(4);
  });

  it.each(examples)('shows the correction of $written with $asked', ({ asked, written, corrected }) => {
    expect(byRules(written.replaceAll('⏎', '\n'), parseOptions(asked))).toBe(corrected.replaceAll('⏎', '\n'));
  });

  it.each(entries)('shows the effect of $term in $written', ({ term, replacement, written, corrected }) => {
    expect(byRules(written, { dictionary: [[term, replacement]] })).toBe(corrected);
  });

  it('shows in the README what the command prints', () => {
    const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
    const [, written = '', printed] = /chat --correct '(.+?)' +# (.+)/.exec(readme) ?? [];
    const style = { autoCapitalize: true, autoPunctuate: true };
    expect(byRules(written, { style })).toBe(printed);
  });

  it('names the model id of the rules', () => {
    expect(guide).toContain(`\`${RULES_MODEL}\``);
  });
});
