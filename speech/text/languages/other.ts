import { currencyName, unitName } from './icu-names.ts';
import type { SpokenLanguage } from './language.ts';

/**
 * Any other language: numbers stay digits, which engines read by their own rules. Converts only what engines get wrong.
 */
export function otherLanguage(tag: string): SpokenLanguage {
  const base = tag.split('-')[0]!;
  return {
    tag,
    base,
    decimalMark: WITH_POINT.has(base) || /^(es-(mx|us|419)|de-ch|ms)\b/.test(tag) ? '.' : ',',
    dateOrder: 'day-month',
    numbers: null,
    months: null,
    phrases: null,
    to: TO[base] ?? null,
    plus: null,
    percent: null,
    currency(code, amount) {
      const name = currencyName(base, code, amount);
      return name === null ? null : { name: atHome(name, base), subunit: () => null };
    },
    unit: (unit, amount) => unitName(base, unit, amount),
    abbreviations: new Map(),
    numberCues: new Set(),
  };
}

/** Domestic currency without its adjective: "reais", not "reais brasileiros". */
function atHome(name: string, base: string): string {
  if (name === '人民币') return '元';
  const adjective = ADJECTIVES[base];
  if (adjective === undefined || !adjective.test(name)) return name;
  return name.replace(adjective, '').trim().toLowerCase();
}

/** Between the numbers of a range. */
const TO: Record<string, string> = Object.assign(Object.create(null), {
  ...{ de: 'bis', fr: 'à', es: 'a', it: 'a', pt: 'a', ca: 'a', ro: 'la', nl: 'tot', sv: 'till', da: 'til', nb: 'til' },
  ...{ pl: 'do', cs: 'až', sk: 'až', ru: 'до', uk: 'до', id: 'sampai', ms: 'hingga', vi: 'đến' },
});

const ADJECTIVES: Record<string, RegExp> = Object.assign(Object.create(null), {
  pt: / ?brasileir\S+/i,
  ru: /российск\S+ ?/i,
  pl: / ?polski\S*/i,
  cs: / ?česk\S+ ?/i,
  sv: /svensk\S+ ?/i,
});

/** Languages that write 1,234.5; the rest write 1.234,5. */
const WITH_POINT = new Set([
  'zh',
  'cmn',
  'yue',
  'ja',
  'ko',
  'th',
  'he',
  'ne',
  'si',
  'my',
  'sw',
  'am',
  'cy',
  'ga',
  'mt',
  'ar',
  'fa',
  'kok',
  'sd',
]);
