import type { SpokenLanguage } from './languages/language.ts';
import { letters } from './letters.ts';
import { parseNumber, sayDigits, sayNumber } from './numbers.ts';
import type { Context, Reading } from './token.ts';

/** Reads email addresses, web addresses and file names: info@example.com, 10.0.0.1:8080, notes.txt. */
export function readAddress(at: number, { tokens, language }: Context): Reading | null {
  const { core } = tokens[at]!;
  const words = PUNCTUATION_NAMES[language.base];
  if (words === undefined || !/[.@/:]/.test(core)) return null;
  if (EMAIL.test(core)) return { spoken: [sayAddress(core, words, language)] };
  const url = /^(?:https?:\/\/|ftp:\/\/|mailto:)(?=.)/i.exec(core)?.[0] ?? '';
  const rest = core.slice(url.length);
  if (url !== '' || /^www\./i.test(core) || isDomain(rest) || HOST_AND_PORT.test(core)) {
    return { spoken: [sayAddress(rest.replace(/\/$/, ''), words, language)] };
  }
  // Node.js and report.pdf, but not a sentence that lacks its space: end.Start
  if (/^[\p{L}\d_-]{1,30}\.[a-z][a-z\d]{0,4}$/u.test(core)) return { spoken: [sayAddress(core, words, language)] };
  return null;
}

const EMAIL = /^[\p{L}\d._%+-]{1,64}@[\p{L}\d-]{1,63}(?:\.[\p{L}\d-]{1,63}){1,8}$/u;

const HOST_AND_PORT = /^(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}(?:\/\S*)?$/i;

function isDomain(text: string): boolean {
  const host = /^([a-z\d-]{1,63}(?:\.[a-z\d-]{1,63}){1,8})(?:[:/?#]|$)/i.exec(text)?.[1];
  return host !== undefined && DOMAINS.has(host.slice(host.lastIndexOf('.') + 1).toLowerCase());
}

/** Top-level domains that mark a text without scheme as a web address. */
const DOMAINS = new Set([
  ...'com org net edu gov mil int info biz app dev xyz tech shop site online'.split(' '),
  ...'in uk us io ai co de fr eu ca au jp cn ru br it es nl ch sg'.split(' '),
]);

/** Names of punctuation by language. `readAddress` leaves addresses of other languages to other rules. */
const PUNCTUATION_NAMES: Record<string, Record<string, string>> = Object.assign(Object.create(null), {
  en: {
    '.': 'dot',
    '@': 'at',
    '/': 'slash',
    '-': 'dash',
    _: 'underscore',
    '+': 'plus',
    ':': 'colon',
    '?': 'question mark',
    '=': 'equals',
    '&': 'and',
    '#': 'hash',
    '%': 'percent',
    '~': 'tilde',
  },
  hi: {
    '.': 'डॉट',
    '@': 'ऐट',
    '/': 'स्लैश',
    '-': 'डैश',
    _: 'अंडरस्कोर',
    '+': 'प्लस',
    ':': 'कोलन',
    '=': 'बराबर',
    '&': 'ऐंड',
    '#': 'हैश',
    '%': 'प्रतिशत',
  },
});

function sayAddress(address: string, words: Record<string, string>, language: SpokenLanguage): string {
  const parts = address.match(/\d+|[\p{L}\p{M}]+|[^\s]/gu) ?? [];
  const said = parts.map((part, index) => {
    if (/^\d/.test(part)) return sayNumberInName(part, language);
    if (/^[\p{L}\p{M}]/u.test(part)) return isSpelled(part, parts[index - 1]) ? letters(part) : part;
    return words[part] ?? '';
  });
  return said.filter((word) => word !== '').join(' ');
}

/** Reads a number in a name: up to two digits as a quantity ("forty-two"), longer ones digit by digit. */
export function sayNumberInName(digits: string, language: SpokenLanguage): string {
  const number = digits.length <= 2 && !/^0\d/.test(digits) ? parseNumber(digits, language) : null;
  return number === null ? sayDigits(digits, language) : sayNumber(number, language);
}

/** Whether to spell a part: a two-letter domain that is not pronounced as a word, or letters without vowels (www). */
function isSpelled(part: string, before: string | undefined): boolean {
  if (!/^[a-z]+$/i.test(part)) return false;
  if (before === '.' && part.length === 2) return !PRONOUNCED_DOMAINS.has(part.toLowerCase());
  return part.length > 1 && part.length <= 5 && !/[aeiouy]/i.test(part);
}

/** Two-letter top-level domains that are pronounced as words. */
const PRONOUNCED_DOMAINS = new Set(['in', 'co', 'me', 'to', 'is', 'it', 'so', 'no', 'am', 'be']);
