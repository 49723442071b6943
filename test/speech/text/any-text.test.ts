import { describe, expect, it } from 'vitest';
import { readScript } from '../../../speech/text/read-script.ts';
import { type Script, ScriptError } from '../../../speech/text/script.ts';
import * as fc from '../../properties.ts';

const LANGUAGES = ['en-us', 'en-gb', 'en-in', 'hi', 'bn', 'ta', 'te', 'mr', 'gu', 'kn', 'ml', 'pa', 'or', 'as', 'ur'];
const language = fc.constantFrom(...LANGUAGES, 'de', 'fr', 'ja', 'zh', 'th', 'ar', 'constructor', 'xx-yy');

const PIECES = [
  ...['1', '12', '1999', '2026', '1,234', '2,50,000', '3.14', '-5', '98765', '43210', '+91', '(415)', '555-0100', '0'],
  ...[
    '$',
    '$5',
    '₹',
    'Rs.',
    'USD',
    '%',
    'km',
    '°C',
    'lakh',
    'million',
    '1/2',
    '½',
    '21/11/2026',
    '2026-11-21',
    '10:30',
  ],
  ...[
    'am',
    'p.m.',
    'Nov',
    '21st',
    'Dr.',
    'e.g.',
    'No.',
    'St.',
    'IV',
    'Henry',
    'HTML',
    'USA',
    'A.',
    'a@b.co',
    'www.x.com',
  ],
  ...[
    '#tag',
    '&',
    '@',
    '#',
    '+',
    '=',
    '/',
    '*',
    '-',
    '–',
    '<b>',
    '<speak',
    '&amp;',
    '"',
    '(',
    ')',
    '।',
    '。',
    '？',
    ',',
    '.',
  ],
  ...[
    'word',
    'don’t',
    'नमस्ते',
    '१२',
    'வணக்கம்',
    'مرحبا',
    '你好',
    '今日は',
    'สวัสดี',
    '😀',
    '👩‍👩‍👧',
    'é',
    'e\u0301\u0301\u0301',
  ],
  ...[
    '\u200b',
    '\u202e',
    '\u0000',
    '\u001b',
    '\ud800',
    '\udc00',
    '\ufeff',
    '\n',
    '\n\n',
    '\t',
    ' ',
    ' ',
    ' ',
    '\u00a0',
  ],
];
const text = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((pieces) => pieces.join('')),
  fc.array(fc.constantFrom(...PIECES), { maxLength: 40 }).map((pieces) => pieces.join(' ')),
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.tuple(fc.constantFrom(...PIECES), fc.integer({ min: 1, max: 300 })).map(([piece, times]) => piece.repeat(times)),
);
const spacedText = fc
  .array(fc.constantFrom(...PIECES.filter((piece) => !/[\u0e00-\u0e7f\u3040-\u9fff]/.test(piece))), { maxLength: 60 })
  .map((pieces) => pieces.join(' '));

function wordsOf({ clauses }: Script) {
  return clauses.flatMap(({ words }) => words);
}

function isRefused(written: string): boolean {
  return /^\s*(<speak[\s/>]|<speak$|<\?xml\s)/.test(written);
}

describe('reading any text', () => {
  it('preserves its words with single spaces if any of it is spoken', () => {
    fc.assert(
      fc.property(spacedText, language, (written, tag) => {
        if (isRefused(written)) return;
        const words = wordsOf(readScript(written, { language: tag })).map((word) => word.written);
        const wanted = written
          .toWellFormed()
          .split(/\s+/u)
          .filter((word) => word !== '');
        if (words.length > 0) expect(words.join(' ')).toBe(wanted.join(' '));
      }),
      { numRuns: 400 },
    );
  });

  it('loses no character of long words or scripts without spaces', () => {
    fc.assert(
      fc.property(text, language, (written, tag) => {
        if (isRefused(written)) return;
        const words = wordsOf(readScript(written, { language: tag })).map((word) => word.written);
        if (words.length > 0) expect(words.join('')).toBe(written.toWellFormed().replace(/\s+/gu, ''));
      }),
      { numRuns: 400 },
    );
  });

  it('keeps the last character of long words', () => {
    for (const character of ['a', '1', '好', '😀a']) {
      for (let length = 1; length < 200; length++) {
        const written = character.repeat(length);
        const words = wordsOf(readScript(written, { language: 'en-us' }));
        expect(words.map((word) => word.written).join('')).toBe(written);
      }
    }
  });

  it('splits it into clauses of bounded length, none without words', () => {
    fc.assert(
      fc.property(text, language, (written, tag) => {
        if (isRefused(written)) return;
        for (const { words } of readScript(written, { language: tag }).clauses) {
          expect(words.length).toBeGreaterThan(0);
          // A written word has at most 60 characters; its spoken form may be several times longer.
          const isOneWord = words.length === 1;
          expect(words.map((word) => word.written).join(' ').length).toBeLessThanOrEqual(isOneWord ? 120 : 250);
          expect(words.map(({ spoken }) => spoken).join(' ').length).toBeLessThanOrEqual(isOneWord ? 600 : 250);
        }
      }),
      { numRuns: 400 },
    );
  });

  it('removes markup, control characters and lone surrogates', () => {
    fc.assert(
      fc.property(text, language, (written, tag) => {
        if (isRefused(written)) return;
        for (const { spoken } of wordsOf(readScript(written, { language: tag }))) {
          expect(spoken).not.toMatch(/[<>[\]{}]|[^\S ]|\p{Cc}|\p{Cs}|\p{Bidi_Control}|\p{Extended_Pictographic}/u);
          expect(spoken).toBe(spoken.trim());
        }
      }),
      { numRuns: 400 },
    );
  });

  it('counts code points', () => {
    fc.assert(
      fc.property(text, (written) => {
        if (isRefused(written)) return;
        expect(readScript(written, { language: 'en-us' }).characters).toBe([...written].length);
      }),
    );
  });

  it('bounds the spoken length by the written length', () => {
    for (const character of [
      '9',
      '9 ',
      '9-',
      '9,',
      '1/2 ',
      '$1 ',
      '%&@#',
      '१',
      'A',
      'ABC ',
      '+1 ',
      '98765 43210 ',
      '😀',
      '\u0301',
      '. ',
      '("',
    ]) {
      for (const tag of LANGUAGES) {
        const written = character.repeat(Math.floor(5000 / character.length));
        const spoken = wordsOf(readScript(written, { language: tag })).reduce(
          (sum, word) => sum + word.spoken.length,
          0,
        );
        expect(spoken, `${character} in ${tag}`).toBeLessThanOrEqual(60_000);
      }
    }
  });

  it('supports every unit and currency in every language, named or not', () => {
    const signs = 'W V A Hz kHz mg µg dB kWh cal kPa rpm ppm m² qtl st tsp km/h Mbps mA $ € ₹ zł руб BTC XAU'.split(
      ' ',
    );
    for (const tag of [...LANGUAGES, 'de', 'fr', 'ja', 'ar', 'si', 'xx-yy']) {
      for (const written of signs.flatMap((sign) => [`5${sign}`, `2.5 ${sign}`, `${sign}5`])) {
        const words = wordsOf(readScript(written, { language: tag }));
        expect(words.map((word) => word.written).join(' '), tag).toBe(written);
      }
    }
  });

  it('parses or rejects any SSML', () => {
    const ssmlPieces = [
      ...[
        '<speak>',
        '</speak>',
        '<p>',
        '</p>',
        '<s>',
        '</s>',
        '<break/>',
        '<break time="1s"/>',
        '<break time="9999s"/>',
      ],
      ...[
        '<prosody rate="slow">',
        '<prosody pitch="+2st" volume="x-loud">',
        '</prosody>',
        '<sub alias="5 km">',
        '</sub>',
      ],
      ...[
        '<say-as interpret-as="date" format="dmy">',
        '<say-as interpret-as="digits">',
        '</say-as>',
        '<phoneme ph="aː">',
      ],
      ...[
        '</phoneme>',
        '<emphasis>',
        '</emphasis>',
        '&amp;',
        '&',
        '<',
        '<!-- -->',
        '<![CDATA[',
        ']]>',
        '1/2/2026',
        '12',
        'word',
        ' ',
        ', ',
      ],
    ];
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...ssmlPieces), { maxLength: 25 }),
        fc.boolean(),
        language,
        (pieces, isClosed, tag) => {
          try {
            const { clauses } = readScript(`<speak>${pieces.join('')}${isClosed ? '</speak>' : ''}`, { language: tag });
            for (const { words, pauseAfterMs, prosody } of clauses) {
              expect(words.length + pauseAfterMs).toBeGreaterThan(0);
              expect(pauseAfterMs).toBeLessThanOrEqual(10_000);
              expect(prosody.rate).toBeGreaterThanOrEqual(0.25);
              for (const { spoken } of words) expect(spoken).not.toMatch(/[<>]|\p{Cc}/u);
            }
          } catch (error) {
            expect(error).toBeInstanceOf(ScriptError);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('parses any well-formed SSML', () => {
    const element: fc.Arbitrary<string> = fc.letrec<{ node: string; inner: string }>((tie) => ({
      node: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.constantFrom(
          'word ',
          '12, ',
          '(',
          ').',
          '<break time="20ms"/>',
          '<sub alias="x y">z</sub>',
          '<phoneme ph="a b">c d</phoneme>',
        ),
        fc
          .tuple(fc.constantFrom('p', 's', 'emphasis', 'prosody'), tie('inner'))
          .map(([name, inner]) => `<${name}>${inner}</${name}>`),
      ),
      inner: fc.array(tie('node'), { maxLength: 4 }).map((nodes) => nodes.join('')),
    })).inner;
    fc.assert(
      fc.property(element, (ssml) => {
        const words = wordsOf(readScript(`<speak>${ssml}</speak>`, { language: 'en-us' })).map((word) => word.written);
        const wanted = ssml.replace(/<[^>]*>/g, ' ').replace(/\s+/g, '');
        if (words.length > 0) expect(words.join('').replace(/\s+/g, '')).toBe(wanted);
      }),
      { numRuns: 300 },
    );
  });
});
