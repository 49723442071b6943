import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './root.ts';

/**
 * Globs of the files whose texts are checked: the strings of JSON and TypeScript files, the lines of others. Add a file
 * or folder once its texts are plain.
 */
const COVERED: readonly string[] = [
  'openapi.json',
  '{README,CONTRIBUTING}.md',
  'docs/*.md',
  '{bench,bin,diagnosis,language,media,speech,storage,test}/**/README.md',
  '.env.example',
  '*.ts',
  '{http,machines,runtime,sip}/**/*.{ts,md}',
  'bin/**/*.ts',
  '{client,console}/README.md',
  'console/{text,app,parts}/**/*.{ts,tsx}',
  '{actors,diagnosis,language,media,speech,storage}/**/*.ts',
];

/** Globs of the tests whose names are checked. */
const TEST_NAMES: readonly string[] = ['test/**/*.ts'];

/** Modules whose comments are checked. */
const COMMENTED: readonly string[] = [
  '*.ts',
  '{actors,bench,bin,diagnosis,http,language,machines,media,runtime,sip,speech,storage,test}/**/*.ts',
  'console/{*,!(dist)/**/*}.{ts,tsx}',
];

/** A test name is a sentence that can be read with its `describe`, so it starts with a verb or a subject. */
const FRAGMENT_START = /^(?:is|are|was|were|that|of|whose|who|has)\b/i;

/** Phrases of the dialect that this project once had, and what to write instead. */
const DIALECT: readonly [phrase: RegExp, instead: string][] = [
  [/\bwhoever\b/i, 'name the person: you, the client, the user'],
  [/\b(?:no|some|every)body\b/i, 'name the person, or drop the clause'],
  [/\b(?:is|are|was|were|be) told\b/i, 'receives, is notified'],
  [/\btells?\b(?!.* (?:apart|from)\b)/i, 'reports, returns, emits, means'],
  [/\bso many\b/i, 'name the number: limit, count, N seconds'],
  [/\bof which\b/i, 'start a new sentence'],
  [/\b(?:paid|given|gave|gives) (?:it )?back\b/i, 'refunded, returned'],
  [/\bwhat there is\b/i, 'the available ones'],
  [/(?<!\bthere )\b(?:is|are) no(?:ne)?\b(?! (?:longer|more|less|later)\b)/i, 'is not, is invalid, does not exist'],
  [/\b(?:is|are) of\b/i, 'has, belongs to'],
  [/\bgoes without\b/i, 'must not be combined with, omits'],
  [/(?:^|[.:!] )(?:What|Of|Whose) [^?]*?(?:[.;]|$)/, 'start with a subject or a verb'],
  [/(?:^|[.:!] )Who [^?]*?[.;]/, 'start with a subject or a verb'],
];

describe('plain English', () => {
  it.each(COVERED)('%s contains no phrase of the dialect', (glob) => {
    const texts = globSync(glob, { cwd: ROOT }).flatMap(textsOf);
    expect(texts.length, `${glob} has texts`).toBeGreaterThan(0);
    expect(texts.flatMap(dialectIn)).toEqual([]);
  });

  it.each(TEST_NAMES)('the test names of %s are plain sentences', (glob) => {
    const names = globSync(glob, { cwd: ROOT }).flatMap((file) => testNames(file, read(file)));
    expect(names.length, `${glob} has test names`).toBeGreaterThan(0);
    expect(names.flatMap(nameFaults)).toEqual([]);
  });

  it.each(COMMENTED)('the comments of %s contain no phrase of the dialect', (glob) => {
    const texts = globSync(glob, { cwd: ROOT }).flatMap((file) => comments(file, read(file)));
    expect(texts.length, `${glob} has comments`).toBeGreaterThan(0);
    expect(texts.flatMap(dialectIn)).toEqual([]);
  });

  it('finds comments in every form', () => {
    const source = `
/**
 * Returns the key.
 * @throws when it expired
 */
const a = 1; // milliseconds
// One sentence
// on two lines.
const url = 'http://of.no.comment';`;
    expect(comments('sample', source)).toEqual([
      { file: 'sample', place: '3', text: 'Returns the key. @throws when it expired' },
      { file: 'sample', place: '6', text: 'milliseconds' },
      { file: 'sample', place: '7', text: 'One sentence on two lines.' },
    ]);
  });

  it('finds test names in every form', () => {
    const source = `
      describe.skipIf(!isPossible)('a unit', () => {
        it('rejects an expired key', async () => {});
        it.each([['x', 1]])(
          "accepts %s", (text) => {});
        it(\`returns 404\`, { timeout: 1 }, () => {});
        expect(sent('of no test')).toBe('whose');
      });`;
    const names = testNames('sample', source);
    expect(names.map(({ text }) => text)).toEqual(['a unit', 'rejects an expired key', 'accepts %s', 'returns 404']);
    expect(names.map(({ place }) => place)).toEqual(['2', '3', '5', '6']);
  });

  it.each(['is refused', 'of a key', 'Whose user left', 'tells the reason'])('rejects the test name "%s"', (text) => {
    expect(nameFaults({ file: 'sample', place: '1', text })).toHaveLength(1);
  });

  it('reports every phrase of the dialect with a plain one', () => {
    const samples = [
      'Paid by whoever has it.',
      'It waits until nobody reads.',
      'The client is told so.',
      'A frame tells the rest.',
      'Given up after so many seconds.',
      'Three texts, of which one is read.',
      'What failed is paid back.',
      'GET /models lists what there is.',
      'The file is no audio.',
      'It is of messages of a tool.',
      'It goes without a filter.',
      'Nothing is charged. Of a batch: the call.',
      'Who leaves early owes for the whole.',
    ];
    const found = samples.map((text) => dialectIn({ file: 'sample', place: '1', text }));
    expect(found.filter((lines) => lines.length === 0)).toEqual([]);
    expect(DIALECT.filter(([phrase]) => !samples.some((text) => phrase.test(text)))).toEqual([]);
    expect(found[0]).toEqual([
      'sample:1: "whoever" in "Paid by whoever has it." Write instead: name the person: you, the client, the user. See CONTRIBUTING.md, Words.',
    ]);
  });

  it('accepts plain sentences', () => {
    const plain = [
      'What is a tandem exchange?',
      'The key is no longer valid.',
      'If there is no recording yet, try again later.',
      'Returns the calls of the workspace, newest first.',
      'The part of the text that was read.',
      'The store cannot tell a missing object from a forbidden one.',
    ];
    expect(plain.flatMap((text) => dialectIn({ file: 'sample', place: '1', text }))).toEqual([]);
  });
});

interface Text {
  file: string;
  /** Line number or JSON pointer. */
  place: string;
  text: string;
}

/** One line per phrase found. */
function dialectIn({ file, place, text }: Text): string[] {
  return DIALECT.flatMap(([phrase, instead]) => {
    const match = phrase.exec(text)?.[0].replace(/^[.:!] /, '');
    if (match === undefined) return [];
    const excerpt = text.length > 160 ? `${text.slice(0, 160)}...` : text;
    return [`${file}:${place}: "${match}" in "${excerpt}" Write instead: ${instead}. See CONTRIBUTING.md, Words.`];
  });
}

function nameFaults(name: Text): string[] {
  const start = FRAGMENT_START.exec(name.text)?.[0];
  if (start === undefined) return dialectIn(name);
  const advice = 'start with a verb in the present tense, or name the unit';
  return [`${name.file}:${name.place}: "${start}" starts "${name.text}" Write instead: ${advice}.`];
}

/** Names of `describe`, `it` and `test` calls, also of chained ones such as `it.each(rows)(name, run)`. */
function testNames(file: string, source: string): Text[] {
  const call = /(?:\b(?:describe|it|test)(?:\.\w+)*|\))\(\s*/.source;
  const literal = /(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/.source;
  const body = /,\s*(?:async\b|function\b|\(|\{|\w+ =>)/.source;
  return [...source.matchAll(new RegExp(call + literal + body, 'g'))].map((match) => {
    const text = match[1] ?? match[2] ?? match[3] ?? '';
    const start = match.index + match[0].indexOf(text);
    return { file, place: String(source.slice(0, start).split('\n').length), text };
  });
}

function textsOf(file: string): Text[] {
  if (file.endsWith('.json')) return jsonTexts(file);
  return /\.tsx?$/.test(file) ? stringLiterals(file) : proseLines(file);
}

/** Every string with a space in a JSON file, once. */
function jsonTexts(file: string): Text[] {
  const texts = new Map<string, Text>();
  const visit = (value: unknown, place: string): void => {
    if (typeof value === 'string' && value.includes(' ') && !texts.has(value)) {
      texts.set(value, { file, place, text: value });
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, child] of Object.entries(value)) visit(child, `${place}/${key.replaceAll('/', '~1')}`);
    }
  };
  visit(JSON.parse(read(file)), '');
  return [...texts.values()];
}

/** Every string literal with a space on one line of a module, but not its comments. */
function stringLiterals(file: string): Text[] {
  const lines = read(file).split('\n');
  return lines.flatMap((line, index) => {
    if (/^\s*(?:\/\/|\/?\*)/.test(line)) return [];
    const literals = line.matchAll(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g);
    return [...literals].flatMap(({ 1: single, 2: double, 3: template, index: start }) => {
      const text = single ?? double ?? template ?? '';
      if (!text.includes(' ') || isWordList(text)) return [];
      // Help texts of the command line start in lower case.
      const isHelp = /\b(?:about|summary): $/.test(line.slice(0, start));
      return [{ file, place: String(index + 1), text: isHelp ? text.charAt(0).toUpperCase() + text.slice(1) : text }];
    });
  });
}

/** Each block of comment lines, and each comment at the end of a line, without code spans. */
function comments(file: string, source: string): Text[] {
  const found: Text[] = [];
  let block: Text | null = null;
  for (const [index, line] of source.split('\n').entries()) {
    const [, whole] = /^\s*(?:\/\/+|\/\*+|\*\/|\*)\s?(.*?)\s*(?:\*\/)?$/.exec(line) ?? [];
    const trailing = /[;,{}()\]]\s+\/\/ (.*)$/.exec(line)?.[1];
    const text = (whole ?? trailing ?? '').replaceAll(/`[^`]*`/g, '`...`').trim();
    if (whole === undefined) block = null;
    if (text === '') continue;
    if (block === null) {
      const comment = { file, place: String(index + 1), text };
      found.push(comment);
      block = whole === undefined ? null : comment;
    } else block.text += ` ${text}`;
  }
  return found;
}

/** Such as the verbs that a rule of language knows: many words, none twice, without punctuation. */
function isWordList(text: string): boolean {
  const words = text.split(' ');
  return words.length > 12 && new Set(words).size === words.length && /^[a-z ]+$/.test(text);
}

/** Every line or table cell outside of code blocks, without markers such as `#` and `-` and without code spans. */
function proseLines(file: string): Text[] {
  let isCode = false;
  return read(file)
    .split('\n')
    .flatMap((line, index) => {
      if (/^\s*```/.test(line)) isCode = !isCode;
      if (isCode) return [];
      const cells = line.replaceAll(/`[^`]*`/g, '`...`').split('|');
      return cells.map((cell) => ({ file, place: String(index + 1), text: cell.replace(/^[\s#>*+-]+/, '') }));
    });
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}
