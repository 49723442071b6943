import { describe, expect, it } from 'vitest';
import { correctByRules } from '../../../language/correction/rules/correct-by-rules.ts';
import { textOf } from '../../../language/correction/rules/token.ts';
import { tokenize } from '../../../language/correction/rules/tokenize.ts';
import { wordsOf } from '../../../language/correction/words-kept.ts';
import * as fc from '../../properties.ts';
import { atOnce, byRules, rulesRequest } from './by-rules.ts';

const PIECES = [
  ...[
    'hello',
    'i',
    'I',
    "i'm",
    'the',
    'it is',
    'is',
    'not',
    'do not',
    "don't",
    'dont',
    'its',
    "it's",
    'lets',
    'ill',
    'cannot',
  ],
  ...[
    "can't",
    "isn't",
    'you',
    'you are',
    'we have been',
    "y'all",
    "John's",
    'what',
    'what time is it',
    'who',
    'how are you',
  ],
  ...[
    'however',
    'yes',
    'no',
    'in addition',
    'sir',
    'thanks',
    'monday',
    'may',
    'in may',
    'new york',
    'dr',
    'mr',
    'smith',
    'Smith',
  ],
  ...[
    'asap',
    'ASAP',
    'btw',
    'e.g.',
    'i.e',
    'etc',
    'etc.',
    'approx.',
    'w/',
    'w/o',
    'mins',
    '5 min',
    'u',
    'r',
    'ur',
    'gr8',
    'k',
  ],
  ...['Dr.', 'St.', 'No.', 'Mon.', 'Jan', 'p.', 'a.m.', 'U.S.', 'Ph.D.', 'J.', 'idk', 'thx'],
  ...['5', '3.5', '1,000', '10:30', '5km', '2moro', '16:9', '$5', '50%', '.5', '5.', '1.', '(1)', 'a)'],
  ...[
    '.',
    '..',
    '...',
    '. . .',
    '…',
    ',',
    ',,',
    ';',
    ':',
    '!',
    '!!!',
    '?',
    '?!',
    '-',
    '--',
    '—',
    '"',
    "'",
    '“',
    '”',
    '’',
    '(',
    ')',
    '[',
    ']',
  ],
  ...[
    '*',
    '**',
    '_',
    '`',
    '``',
    '```',
    '~~~',
    '#',
    '# ',
    '## title',
    '- ',
    '* ',
    '1. ',
    '> ',
    '|',
    '| a | b |',
    '---',
    '- [ ] ',
  ],
  ...[
    'https://a.b/c?d=e.',
    'www.x.com',
    'a@b.co',
    '@ana',
    '#tag',
    'report.pdf',
    './a/b',
    'C:\\x',
    'foo_bar',
    'f()',
    '{{x}}',
    '<b>',
  ],
  ...['](http://x.y)', '[a](b)', ':)', ':-(', '<3', ':smile:', '😀', '👩‍👩‍👧', '👍🏽', '🇮🇳', '©', '™'],
  ...[
    'done.Then',
    'yes,no',
    'नमस्ते',
    'दुनिया।',
    '१२',
    'வணக்கம்',
    'مرحبا',
    '你好',
    '。',
    'か',
    'สวัสดี',
    'é',
    'e\u0301',
    'bonjour',
    'avec',
    'der',
  ],
  ...[
    'hi anna',
    'dear sir',
    'best regards',
    'tom',
    'subject: x',
    '\u200b',
    '\u202e',
    '\0',
    '\ud800',
    '\udc00',
    '\ufeff',
    '\u00ad',
    '\u200d',
  ],
  ...[
    '\n',
    '\n\n',
    '\r\n',
    '\r',
    '\u2028',
    '\t',
    ' ',
    ' ',
    ' ',
    '  ',
    '\u00a0',
    'constructor',
    '__proto__',
    'toString',
  ],
];
const text = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 30 }).map((pieces) => pieces.join(' ')),
  fc.array(fc.constantFrom(...PIECES), { maxLength: 30 }).map((pieces) => pieces.join('')),
  fc
    .array(fc.tuple(fc.constantFrom(...PIECES), fc.constantFrom('', ' ', ' ', '\n')), { maxLength: 30 })
    .map((pieces) => pieces.flat().join('')),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
);
const style = fc.record({
  tone: fc.constantFrom(null, 'professional', 'friendly', 'constructor'),
  autoCapitalize: fc.boolean(),
  autoPunctuate: fc.boolean(),
  useContractions: fc.constantFrom(true, false, null),
  expandAbbreviations: fc.boolean(),
});
const appContext = fc.constantFrom(null, 'email', 'chat', 'document', 'message', 'social');
/** Replacements that no other rule produces; none contains another. */
const dictionary = fc.uniqueArray(
  fc.tuple(
    fc.constantFrom(
      'tandam',
      'sip trunk',
      'kubernetis',
      'iphone',
      'जगत',
      'hello',
      'smith',
      'c++',
      'foo_bar',
      '24/7',
      '__proto__',
    ),
    fc.constantFrom('Tandem', 'Tandem Inc', 'SIP line', 'gadget', 'दुनिया', 'X', '$5', 'two words'),
  ),
  { selector: ([term]) => term, maxLength: 4 },
);
const RUNS = { numRuns: 1500 };

describe('correction by rules', () => {
  it('tokenizes without losing a character', () => {
    fc.assert(
      fc.property(text, (written) => {
        expect(textOf(atOnce(tokenize(written)))).toBe(written);
      }),
      RUNS,
    );
  });

  it('changes nothing without a style or dictionary', () => {
    fc.assert(
      fc.property(text, (written) => {
        expect(byRules(written)).toBe(written);
      }),
      RUNS,
    );
  });

  it('changes nothing when run a second time', () => {
    fc.assert(
      fc.property(text, style, appContext, dictionary, (written, wanted, context, entries) => {
        const asked = { style: wanted, appContext: context, dictionary: entries };
        const once = byRules(written, asked);
        expect(byRules(once, asked)).toBe(once);
      }),
      { numRuns: 6000 },
    );
  });

  it('changes nothing in repeated text when run a second time', () => {
    const asked = {
      style: { autoCapitalize: true, autoPunctuate: true, useContractions: false, expandAbbreviations: true },
      appContext: 'email',
      dictionary: [[`${'hello '.repeat(30)}x`, 'never']],
    } as const;
    for (const piece of PIECES) {
      for (const gap of ['', ' ']) {
        const once = byRules(`${piece}${gap}`.repeat(400), asked);
        expect(byRules(once, asked)).toBe(once);
      }
    }
  });

  it('yields to other work while it searches for long terms that almost match', () => {
    const dictionary = [[`${'x '.repeat(99)}y`, 'never']] as const;
    const work = correctByRules(rulesRequest('x '.repeat(2_000), { dictionary }));
    let turns = 0;
    while (!work.next().done) turns++;
    // The rule searches for the whole term after each of these words.
    expect(turns).toBeGreaterThan(1_000);
  });

  it('keeps its words when only capitals and punctuation are corrected', () => {
    fc.assert(
      fc.property(text, fc.constantFrom(null, 'email', 'chat'), (written, context) => {
        const corrected = byRules(written, {
          style: { autoCapitalize: true, autoPunctuate: true },
          appContext: context,
        });
        expect(wordsOf(corrected).join('')).toBe(wordsOf(written).join(''));
      }),
      RUNS,
    );
  });

  it('keeps every word that no rule covers, with any style', () => {
    const plain = fc.array(fc.stringMatching(/^[b-df-hj-np-tv-z]{3}qx[b-df-hj-np-tv-z]{2}$/), {
      minLength: 1,
      maxLength: 20,
    });
    fc.assert(
      fc.property(plain, text, style, appContext, (words, between, wanted, context) => {
        const written = words.join(` ${between.replace(/[`~<[\]{}|>\\/@#_=&]/g, '')} `);
        const corrected = byRules(written, { style: wanted, appContext: context }).toLowerCase();
        for (const word of words) expect(corrected).toContain(word);
      }),
      RUNS,
    );
  });

  it('keeps addresses, code and emoji with any style', () => {
    const kept = [
      'https://a.b/c?d=e,f',
      'a.b@example.co',
      '`do not ,touch`',
      '@ana_b',
      '#dontTag',
      'report.final.pdf',
      '👩‍👩‍👧',
      './dont/go',
    ];
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...kept), { minLength: 1, maxLength: 6 }),
        style,
        appContext,
        (pieces, wanted, context) => {
          const corrected = byRules(`dont ${pieces.join(' and ')} ok`, { style: wanted, appContext: context });
          for (const piece of pieces) expect(corrected).toContain(piece);
        },
      ),
    );
  });
});
