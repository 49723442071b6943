import type { SpokenLanguage } from './languages/language.ts';
import { sayDigits } from './numbers.ts';
import type { Context, Reading, Token } from './token.ts';

/** Reads telephone keys and codes: "press * or #", "dial *67", "*121#". */
export function readKeys(at: number, { tokens, language }: Context): Reading | null {
  const { clean, core, trail } = tokens[at]!;
  const name = NAMES.get(language.base);
  if (name === undefined || !/[*#]/.test(clean)) return null;
  const keys = clean.replace(/^["'“‘(]+|["'”’).,;:!?]+$/gu, '');
  if (!/^[*#\d]{1,20}$/.test(keys)) return null;
  if (!CODE.test(keys) && !(PRESSED.test(keys) && isPressed(at, tokens))) return null;
  const said = (keys.match(/\d+|[*#]/g) ?? []).map((part) =>
    part === '*' ? name.star : part === '#' ? name.hash(language) : sayDigits(part, language),
  );
  // A word of signs alone has no core, so its punctuation is not added again.
  return { spoken: [said.join(' ') + (core === '' ? (/[.,;:!?]+$/.exec(trail || clean)?.[0] ?? '') : '')] };
}

/** A code for the network (3GPP TS 22.030). */
const CODE = /^[*#]{1,2}\d[\d*]*#$/;

/** A sign alone, *67, and digits that the pound key ends. */
const PRESSED = /^(?:[*#]|\*\d{2,3}|\d{1,12}#)$/;

interface Names {
  star: string;
  hash: (language: SpokenLanguage) => string;
}

const NAMES: ReadonlyMap<string, Names> = new Map<string, Names>([
  ['en', { star: 'star', hash: ({ tag }) => (tag === 'en' || /-(us|ca)\b/.test(tag) ? 'pound' : 'hash') }],
  ['hi', { star: 'स्टार', hash: () => 'हैश' }],
]);

/** A sign elsewhere is an ornament, or means "number". */
function isPressed(at: number, tokens: readonly Token[]): boolean {
  const before = tokens[at - 1];
  if (/^(?:key|button|sign|symbol)$/i.test(tokens[at + 1]?.core ?? '')) return true;
  if (/^(?:दबा|डायल)/u.test(tokens[at + 1]?.core ?? '')) return true;
  if (tokens[at]!.clean === '#' && isCount(at, tokens)) return false;
  if (before === undefined || !(before.trail.startsWith(',') || BEFORE_KEYS.test(before.core))) return false;
  for (let verb = at - 1; verb >= Math.max(0, at - LONGEST_SENTENCE); verb--) {
    const { core, trail, endsParagraph } = tokens[verb]!;
    if (endsParagraph || /[.!?]/.test(trail)) return false;
    if (VERB.test(core)) return true;
  }
  return false;
}

/** "Enter the # of guests" and "type the # you see", but "press the # and wait". */
function isCount(at: number, tokens: readonly Token[]): boolean {
  if (/^of$/i.test(tokens[at + 1]?.core ?? '')) return true;
  return /^the$/i.test(tokens[at - 1]?.core ?? '') && /^(?:enter|type)$/i.test(tokens[at - 2]?.core ?? '');
}

const VERB = /^(?:press|pressing|dial|dialing|dialling|hit|push|enter|type)$/i;
const BEFORE_KEYS = /^(?:press|pressing|dial|dialing|dialling|hit|push|enter|type|or|and|the|then|by|with)$/i;
/** In words. */
const LONGEST_SENTENCE = 24;
