import { MAY_END_SENTENCE } from './languages/english-words.ts';
import type { Context, Reading, Token } from './token.ts';

/** Reads Dr., e.g., approx., No. 5, J. K. Rowling, U.S.A. Initials end no sentence in any language. */
export function readAbbreviation(at: number, context: Context): Reading | null {
  return readByNeighbours(at, context) ?? readByTable(at, context) ?? readInitials(at, context);
}

function readByTable(at: number, { tokens, language }: Context): Reading | null {
  const { core, trail } = tokens[at]!;
  if (core.length > 12) return null;
  const lower = core.toLowerCase();
  if (trail.startsWith('.')) {
    const written = `${lower}.`;
    const spoken = language.abbreviations.get(written);
    if (spoken !== undefined) {
      return { spoken: [spoken], fullStop: MAY_END_SENTENCE.has(written) ? 'may-end' : 'never-ends' };
    }
  }
  const spoken = language.abbreviations.get(lower);
  return spoken === undefined ? null : { spoken: [spoken] };
}

/** Abbreviations whose meaning depends on whether a name or number precedes or follows. */
function readByNeighbours(at: number, { tokens, language }: Context): Reading | null {
  if (language.base !== 'en') return null;
  const token = tokens[at]!;
  const next = token.trail === '' || token.trail === '.' ? tokens[at + 1] : undefined;
  const isBeforeName = startsWithCapital(next);
  const isBehindName = startsWithCapital(tokens[at - 1]) || tokens[at - 1]?.hasDigit === true;
  switch (token.core) {
    case 'Dr':
      if (isBeforeName || !isBehindName) return { spoken: ['Doctor'], fullStop: 'never-ends' };
      return { spoken: ['Drive'], fullStop: 'may-end' };
    case 'St':
      if (isBehindName && tokens[at - 1]!.trail === '') return { spoken: ['Street'], fullStop: 'may-end' };
      return isBeforeName ? { spoken: ['Saint'], fullStop: 'never-ends' } : null;
    case 'Ave':
      return isBehindName && tokens[at - 1]!.trail === '' ? { spoken: ['Avenue'], fullStop: 'may-end' } : null;
    case 'Mt':
      return isBeforeName ? { spoken: ['Mount'], fullStop: 'never-ends' } : null;
    case 'Co':
      return token.trail.startsWith('.') && isBehindName ? { spoken: ['Company'], fullStop: 'may-end' } : null;
    case 'No':
    case 'Nos':
    case 'no':
    case 'nos':
      if (!token.trail.startsWith('.') || !next?.hasDigit) return null;
      return { spoken: [/s$/.test(token.core) ? 'numbers' : 'number'], fullStop: 'never-ends' };
    default: {
      const spoken =
        token.trail.startsWith('.') && next?.hasDigit ? BEFORE_NUMBERS.get(token.core.toLowerCase()) : undefined;
      return spoken === undefined ? null : { spoken: [spoken], fullStop: 'never-ends' };
    }
  }
}

const BEFORE_NUMBERS = new Map([
  ['p', 'page'],
  ['pp', 'pages'],
  ['pg', 'page'],
  ['fig', 'figure'],
  ['eq', 'equation'],
  ['vol', 'volume'],
  ['ch', 'chapter'],
  ['sec', 'section'],
  ['art', 'article'],
  ['ext', 'extension'],
  ['max', 'maximum'],
  ['min', 'minimum'],
  ['ref', 'reference'],
  ['v', 'version'],
  ['ver', 'version'],
  ['c', 'circa'],
]);

/** "J." and "U.S.A.", in any script with capitals. */
function readInitials(at: number, { tokens }: Context): Reading | null {
  const { core, trail } = tokens[at]!;
  if (!trail.startsWith('.') || core.length > 15 || core === 'I') return null;
  return /^\p{Lu}(?:\.\p{Lu})*$/u.test(core) ? { spoken: [`${core}.`], fullStop: 'never-ends' } : null;
}

export function startsWithCapital(token: Token | undefined): boolean {
  return token !== undefined && /^\p{Lu}/u.test(token.core);
}
