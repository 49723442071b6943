import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');

/**
 * Globs of the files whose texts are checked: the strings of JSON and TypeScript files, the lines of others. Add a file
 * or folder once its texts are plain.
 */
const COVERED: readonly string[] = [
  'openapi.json',
  '{README,CONTRIBUTING}.md',
  'docs/*.md',
  '{bench,bin,language,media,speech,storage,test}/**/README.md',
  '.env.example',
  '*.ts',
  '{http,machines,runtime,sip}/**/*.{ts,md}',
  'bin/**/*.ts',
  '{actors,language,media,speech,storage}/**/*.ts',
];

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

function textsOf(file: string): Text[] {
  if (file.endsWith('.json')) return jsonTexts(file);
  return file.endsWith('.ts') ? stringLiterals(file) : proseLines(file);
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
