import { sayNumberInName } from './addresses.ts';
import { NUMBERED_THINGS, REGNAL_NAMES, SPELLED_WORDS } from './languages/english-words.ts';
import { letters } from './letters.ts';
import type { Context, Reading, Token } from './token.ts';

/**
 * Reads HTML, USA's, PDFs; MP3, B-52, AB1234; Henry VIII, Chapter IV. English only: engines for other languages have
 * their own rules.
 */
export function readCapitals(at: number, context: Context): Reading | null {
  if (context.language.base !== 'en' || !/^\p{Lu}/u.test(context.tokens[at]!.core)) return null;
  return (
    readRomanNumeral(at, context) ?? readAcronym(at, context) ?? readUtcOffset(at, context) ?? readCode(at, context)
  );
}

/** UTC-5, GMT-03:30. Those with a plus are read as signs. */
function readUtcOffset(at: number, { tokens, language }: Context): Reading | null {
  const match = /^(UTC|GMT)-(\d{1,2})(?::([0-5]\d))?$/.exec(tokens[at]!.core);
  if (match === null) return null;
  const [, zone = '', hours, minutes = '00'] = match;
  const { cardinal, minus } = language.numbers!;
  const said = [hours, minutes].map(Number).filter((number, index) => index === 0 || number > 0);
  return { spoken: [`${zone} ${minus} ${said.map((number) => cardinal(number, null)).join(' ')}`] };
}

function readAcronym(at: number, { tokens }: Context): Reading | null {
  const match = /^([A-Z]{2,6})(['’]?s)?$/.exec(tokens[at]!.core);
  if (match === null) return null;
  const [, capitals = '', ending] = match;
  const isUnpronounceable = !/[AEIOUY]/.test(capitals);
  const isKnown = SPELLED_WORDS.has(capitals) && !isShouted(at, tokens);
  return isUnpronounceable || isKnown ? { spoken: [`${letters(capitals)}${ending === undefined ? '' : "'s"}`] } : null;
}

/** Beside other words in capitals, "IT" and "US" are words. */
function isShouted(at: number, tokens: readonly Token[]): boolean {
  return [tokens[at - 1], tokens[at + 1]].some((token) => token !== undefined && /^[A-Z]{4,}$/.test(token.core));
}

/** Codes of letters and digits. */
export function readCode(at: number, { tokens, language }: Context): Reading | null {
  const { core } = tokens[at]!;
  if (!/^(?=.{0,19}\d)(?:[A-Z]{1,5}|\d{1,12}|-){2,12}$/.test(core) || core.length > 20) return null;
  const parts = core.match(/[A-Z]+|\d+/g) ?? [];
  // PAN ABCDE1234F, IFSC SBIN0001234
  const isIdentifier = core.length >= 10 && !core.includes('-') && /\d{4}/.test(core);
  const said = parts.map((part) => {
    // FY2024-25
    if (/^(?:19|20)\d\d$/.test(part)) return language.numbers!.year(Number(part));
    if (/\d/.test(part)) return sayNumberInName(part, language);
    return part.length > 3 && /[AEIOUY]/.test(part) && !isIdentifier ? part : letters(part);
  });
  return { spoken: [said.join(' ')] };
}

/** Only after a noun that is numbered so: a king, a chapter. */
function readRomanNumeral(at: number, { tokens, language }: Context): Reading | null {
  const before = tokens[at - 1];
  const { core } = tokens[at]!;
  const [, numeral = '', ending] = /^([IVXL]{1,7})(['’]s)?$/.exec(core) ?? [];
  if (before === undefined || before.trail !== '' || numeral === '') return null;
  const number = fromRoman(numeral);
  if (number === null) return null;
  if (REGNAL_NAMES.has(before.core) && core.length > 1) {
    return { spoken: [`the ${language.numbers!.ordinal(number)}${ending === undefined ? '' : "'s"}`] };
  }
  if (ending !== undefined || !NUMBERED_THINGS.has(before.core.toLowerCase())) return null;
  // Unlike "part I play", "grade X" and "one unit IV".
  const isSure = /^[IVX]{2,}$/.test(numeral) && before.core !== 'unit';
  if (!isSure && !/^\p{Lu}/u.test(before.core)) return null;
  return { spoken: [language.numbers!.cardinal(number, null)] };
}

function fromRoman(numeral: string): number | null {
  const match = /^(X{0,3}|XL|L)(V?I{0,3}|IV|IX)$/.exec(numeral);
  if (match === null) return null;
  const tens = ['', 'X', 'XX', 'XXX', 'XL', 'L'].indexOf(match[1]!);
  const units = ['', 'I', 'II', 'III', 'IV', 'V', 'VI', 'VII', 'VIII', 'IX'].indexOf(match[2]!);
  return tens * 10 + units;
}
