import type { SpokenLanguage } from './languages/language.ts';
import { parseNumber, sayNumber, type WrittenNumber } from './numbers.ts';
import { type Context, isOpen, type Reading, VULGAR_FRACTIONS } from './token.ts';

/** Reads $5, ₹2,50,000, €3.50, $3 million, Rs. 500, 500 INR, $5-10. */
export function readMoney(at: number, context: Context): Reading | null {
  return (
    readAttached(at, context) ??
    readSymbolFirst(at, context) ??
    readSymbolLast(at, context) ??
    readSignBehind(at, context)
  );
}

/** One word, or two with "million" or "lakh". */
function readAttached(at: number, { tokens, language }: Context): Reading | null {
  const token = tokens[at]!;
  if (!token.hasDigit) return null;
  if (token.core.startsWith('+') && language.plus !== null) {
    const unsigned = tokens.with(at, { ...token, core: token.core.slice(1) });
    const reading = readAttached(at, { tokens: unsigned, language });
    return reading && { ...reading, spoken: [`${language.plus} ${reading.spoken[0]}`, ...reading.spoken.slice(1)] };
  }
  const about =
    language.base === 'en' && token.core.startsWith('~') ? parseAttached(token.core.slice(1), language) : null;
  if (about !== null) return { spoken: [`about ${sayMoney(about, language)}`] };
  const written = token.core.replace(/\/-?$/, '');
  const several = readRangeOrRate(written, at, { tokens, language });
  if (several !== null) return several;
  const hyphenated = language.base === 'en' ? sayHyphenated(written, language) : null;
  if (hyphenated !== null) return { spoken: [hyphenated] };
  const money = parseAttached(written, language);
  if (money === null) return null;
  const magnitude = magnitudeBehind(at, { tokens, language });
  if (magnitude !== null && money.magnitude === null) return sayWithMagnitude(money, magnitude, language);
  const per =
    language.base === 'en' && isOpen(token) ? SHORT_PER.get(tokens[at + 1]?.core.replace('.', '') ?? '') : undefined;
  if (per !== undefined) return { spoken: [sayMoney(money, language), `per ${per}`], fullStop: 'may-end' };
  const isOfThing = language.base === 'en' && isOpen(token) && OF_MONEY.test(tokens[at + 1]?.core ?? '');
  return { spoken: [isOfThing ? sayMoneyBefore(money, language) : sayMoney(money, language)] };
}

/** "$5-10", "$5-10 million" and "$5/month". */
function readRangeOrRate(written: string, at: number, { tokens, language }: Context): Reading | null {
  const range = parseRange(written, language);
  if (range !== null) {
    const magnitude = magnitudeBehind(at, { tokens, language });
    if (magnitude === null || range.high.magnitude !== null) return { spoken: [sayRange(range, language)] };
    const { spoken, ...end } = sayWithMagnitude(range.high, magnitude, language);
    return { ...end, spoken: [`${range.from} ${spoken[0]}`, ...spoken.slice(1)] };
  }
  const rate = language.base === 'en' ? (RATE.exec(written) ?? SHORT_RATE.exec(written)) : null;
  const each = rate === null ? null : sayEach(rate[1]!, language);
  return each === null ? null : sayPer(rate![2]!, [each]);
}

/** Adds "per month" to the last words. A short form such as "mo." may end a sentence. */
function sayPer(unit: string, words: readonly string[]): Reading {
  const full = PER.get(unit) ?? SHORT_PER.get(unit);
  const spoken = words.with(-1, `${words.at(-1)} per ${full ?? unit}`);
  return { spoken, ...(full !== undefined && { fullStop: 'may-end' as const }) };
}

interface MoneyRange {
  /** In words: "five to". */
  from: string;
  high: Money;
}

/** "$5-10", "$5k-$10k", "5-10€". */
function parseRange(written: string, language: SpokenLanguage): MoneyRange | null {
  // 5-10€ becomes 5€-10€.
  const withBoth = written.replace(/^(\d[\d.,]*)(?=[-–].+(\p{Sc})$)/u, '$1$2');
  const range = RANGE.exec(written) ?? RANGE_BEFORE_SIGN.exec(withBoth);
  if (range === null || language.to === null) return null;
  const low = parseAttached(range[1]!, language);
  const high = parseAttached(range[2]!, language) ?? withSymbolOf(range[1]!, range[2]!, language);
  if (low === null || high === null || low.code !== high.code) return null;
  const number = sayNumber(low.number, language, groupingOf(low, language));
  return { from: `${number}${low.magnitude === null ? '' : ` ${low.magnitude}`} ${language.to}`, high };
}

const RANGE = /^([^\d]{1,4}[\d.,]+[a-z]{0,2})[-–]([^\d]{0,4}[\d.,]+[a-z]{0,2})$/iu;
const RANGE_BEFORE_SIGN = /^(\d[\d.,]*\p{Sc})[-–](\d[\d.,]*\p{Sc})$/u;

function sayRange({ from, high }: MoneyRange, language: SpokenLanguage): string {
  return `${from} ${sayMoney(high, language)}`;
}

/** The amount of a rate. */
function sayEach(written: string, language: SpokenLanguage): string | null {
  const range = parseRange(written, language);
  if (range !== null) return sayRange(range, language);
  const money = parseAttached(written, language);
  return money && sayMoney(money, language);
}

/** "A $5-million deal", "$100-a-day". */
function sayHyphenated(written: string, language: SpokenLanguage): string | null {
  const [, amount = '', words = ''] = /^([^-]{1,20}\d[^-]?)-(\p{L}[\p{L}-]{0,30})$/u.exec(written) ?? [];
  const money = parseAttached(amount, language);
  if (money === null) return null;
  const magnitude = money.magnitude === null ? magnitudeOf(words, language) : null;
  if (magnitude !== null) return sayMoneyBefore({ ...money, magnitude }, language);
  return `${sayMoney(money, language)} ${words.replaceAll('-', ' ')}`;
}

/** "$ 5", "Rs. 500", "INR 2,50,000", "₹ 1.5 lakh", "Rs 500-1000", "Rs 99/month". */
function readSymbolFirst(at: number, { tokens, language }: Context): Reading | null {
  const { core, trail, endsParagraph } = tokens[at]!;
  const code = currencyOf(core, language);
  const amount = tokens[at + 1];
  if (code === null || !(trail === '' || trail === '.') || endsParagraph || !amount?.hasDigit) return null;
  const written = amount.core.replace(/\/-?$/, '');
  const suffixed = parseSuffixed(written, language);
  if (suffixed === null) {
    const several = readRangeOrRate(`${code}${written}`, at + 1, { tokens, language });
    return several && { ...several, spoken: ['', ...several.spoken] };
  }
  const money = { ...suffixed, code };
  const magnitude = magnitudeBehind(at + 1, { tokens, language });
  if (magnitude === null) return { spoken: ['', sayMoney(money, language)] };
  const said = sayWithMagnitude(money, magnitude, language);
  return { ...said, spoken: ['', ...said.spoken] };
}

/** "500 INR", "5 €", "3 million USD". */
function readSymbolLast(at: number, { tokens, language }: Context): Reading | null {
  const token = tokens[at]!;
  if (!token.hasDigit || !isOpen(token)) return null;
  const suffixed = parseSuffixed(token.core, language);
  if (suffixed === null) return null;
  const next = tokens[at + 1];
  const magnitude = magnitudeOf(next?.core, language);
  const code = currencyOf(tokens[magnitude === null ? at + 1 : at + 2]?.core ?? '', language);
  if (code === null || (magnitude !== null && !isOpen(next))) return null;
  const money = { ...suffixed, code };
  const number = sayNumber(money.number, language, groupingOf(money, language));
  const name = nameOf(code, magnitude === null ? money.number : MANY, language);
  if (name === null) return null;
  return { spoken: magnitude === null ? [number, name] : [number, magnitude, name] };
}

/** After a number that another rule has read: 12 345 €. */
function readSignBehind(at: number, { tokens, language }: Context): Reading | null {
  const code = SIGNS.get(tokens[at]!.core) === undefined ? null : currencyOf(tokens[at]!.core, language);
  const before = tokens[at - 1];
  if (code === null || !isOpen(before) || !before.hasDigit) return null;
  const name = nameOf(code, MANY, language);
  return name === null ? null : { spoken: [name] };
}

const RATE =
  /^(.+)\/(month|mo|year|yr|day|hour|hr|minute|min|week|wk|night|annum|person|unit|user|seat|item|call|share|kg|lb|oz|mile|mi|gal|GB|MB|sq\.?ft)$/;
/** Names of what an amount is for, by their short forms. */
export const PER: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ mo: 'month', yr: 'year', hr: 'hour', min: 'minute', sec: 'second', wk: 'week' },
    ...{ kg: 'kilogram', lb: 'pound', oz: 'ounce', mi: 'mile', gal: 'gallon' },
    ...{ GB: 'gigabyte', MB: 'megabyte', sqft: 'square foot', 'sq.ft': 'square foot' },
  }),
);
/** £50pw */
const SHORT_RATE = /^(.*\d[kKmM]?)(pw|pcm|pm|pa|pd|ph|pp)$/;
const SHORT_PER: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ pw: 'week', pcm: 'calendar month', pa: 'annum', pp: 'person' },
    ...{ pm: 'month', pd: 'day', ph: 'hour' },
  }),
);

interface Money {
  code: string;
  number: WrittenNumber;
  /** Already in words: "million" of "$3M". */
  magnitude: string | null;
}

const MANY = { whole: '2', decimals: null };

/** "A five dollar bill". */
function sayMoneyBefore(money: Money, language: SpokenLanguage): string {
  const one = money.number.decimals === null ? nameOf(money.code, { whole: '1', decimals: null }, language) : null;
  if (one === null) return sayMoney(money, language);
  const number = sayNumber(money.number, language, groupingOf(money, language));
  return `${number} ${money.magnitude === null ? '' : `${money.magnitude} `}${one}`;
}

const OF_MONEY =
  /^(bill|note|coin|coupon|voucher|gift|discount|deposit|fee|fine|loan|bonus|charge|plan|ticket|rebate|refund|deal|prize|credit|recharge|cashback|surcharge|tip)$/i;

/** In one word, as in "five dollars and fifty cents". */
function sayMoney({ code, number, magnitude }: Money, language: SpokenLanguage): string {
  const grouping = groupingOf({ code, number }, language);
  const names = language.currency(code, magnitude === null ? number : MANY);
  if (names === null) return `${sayNumber(number, language, grouping)} ${code}`;
  if (magnitude !== null) return `${sayNumber(number, language, grouping)} ${magnitude} ${names.name}`;
  const cents = number.decimals !== null && number.decimals.length <= 2 ? Number(number.decimals.padEnd(2, '0')) : null;
  const subunit = cents === null || language.numbers === null ? null : names.subunit(cents);
  if (cents === null || subunit === null || language.numbers === null) {
    return `${sayNumber(number, language, grouping)} ${names.name}`;
  }
  const centsSaid = `${language.numbers.cardinal(cents, null)} ${subunit}`;
  const minus = number.negative ? `${language.numbers.minus} ` : '';
  if (/^0*$/.test(number.whole) && cents > 0) return `${minus}${centsSaid}`;
  const whole = { ...number, decimals: null };
  const name = language.currency(code, whole)?.name ?? names.name;
  const and = language.base === 'en' ? 'and ' : '';
  return `${sayNumber(whole, language, grouping)} ${name}${cents === 0 ? '' : ` ${and}${centsSaid}`}`;
}

/** "three" and "million dollars" for "$3" and "million", or "million dollars per year" for "million/year". */
function sayWithMagnitude(
  money: Omit<Money, 'magnitude'>,
  { name: magnitude, per }: Magnitude,
  language: SpokenLanguage,
): Reading {
  const name = nameOf(money.code, MANY, language);
  const number = sayHalves(money.number, language) ?? sayNumber(money.number, language, groupingOf(money, language));
  const words = [number, name === null ? magnitude : `${magnitude} ${name}`];
  return per === null ? { spoken: words } : sayPer(per, words);
}

/** Hindi has words for one and a half and two and a half. */
function sayHalves({ whole, decimals, negative }: WrittenNumber, language: SpokenLanguage): string | null {
  if (language.base !== 'hi' || decimals !== '5' || negative) return null;
  return { '1': 'डेढ़', '2': 'ढाई' }[whole] ?? null;
}

/** Rupees are counted in lakh and crore. */
function groupingOf({ code, number }: { code: string; number: WrittenNumber }, language: SpokenLanguage) {
  if (number.grouping !== null) return number.grouping;
  return code === 'INR' && language.base === 'en' ? 'indian' : null;
}

function nameOf(
  code: string,
  { whole, decimals }: { whole: string; decimals: string | null },
  language: SpokenLanguage,
) {
  return language.currency(code, { whole, decimals })?.name ?? null;
}

function parseAttached(text: string, language: SpokenLanguage): Money | null {
  const first = /^(-?)([^\d\s.,+-]{1,3}(?:(?<=[\p{L}\p{M}])\.)?|[A-Z]{3})(-?)(\d.*|\.\d.*)$/u.exec(text);
  if (first !== null) {
    const code = currencyOf(first[2]!, language);
    const amount = code === null ? null : parseSuffixed(first[4]!, language);
    if (code === null || amount === null) return null;
    const negative = first[1] !== '' || first[3] !== '';
    return { code, number: { ...amount.number, negative }, magnitude: amount.magnitude };
  }
  const last = AMOUNT_FIRST.exec(text);
  const code = last === null ? null : currencyOf(last[2]!, language);
  const number = last === null ? null : parseNumber(last[1]!, language);
  return code === null || number === null ? null : { code, number, magnitude: null };
}

const AMOUNT = `-?[\\d.,]*\\d[${VULGAR_FRACTIONS}]?`;
const AMOUNT_FIRST = new RegExp(`^(${AMOUNT})([^\\d\\s]{1,3})$`, 'u');
const SUFFIXED = new RegExp(`^(${AMOUNT})([a-z]{0,5})\\+?$`, 'iu');

function withSymbolOf(first: string, second: string, language: SpokenLanguage): Money | null {
  return parseAttached(`${/^[^\d]*/u.exec(first)![0]}${second}`, language);
}

/** A number with an optional magnitude suffix: 3M, 2.5cr. */
function parseSuffixed(text: string, language: SpokenLanguage): Omit<Money, 'code'> | null {
  const match = SUFFIXED.exec(text);
  if (match === null) return null;
  const number = parseNumber(match[1]!, language);
  if (number === null) return null;
  if (match[2] === '') return { number, magnitude: null };
  const magnitude = language.base === 'en' ? (SUFFIXES.get(match[2]!.toLowerCase()) ?? null) : null;
  return magnitude === null ? null : { number, magnitude };
}

const SUFFIXES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ k: 'thousand', m: 'million', mn: 'million', mm: 'million', mio: 'million', b: 'billion', bn: 'billion' },
    ...{ t: 'trillion', tn: 'trillion', l: 'lakh', lac: 'lakh', lakh: 'lakh', cr: 'crore', crore: 'crore' },
  }),
);

interface Magnitude {
  name: string;
  /** "year" of "lakh/year". */
  per: string | null;
}

/** Reads the word after an amount: "lakh" or "lakh/year". */
function magnitudeBehind(at: number, { tokens, language }: Context): Magnitude | null {
  const word = isOpen(tokens[at]) ? tokens[at + 1]?.core : undefined;
  const [, counted = word, per = null] = (language.base === 'en' && RATE.exec(word ?? '')) || [];
  const name = magnitudeOf(counted, language);
  return name === null ? null : { name, per };
}

function magnitudeOf(word: string | undefined, language: SpokenLanguage): string | null {
  if (word === undefined || word === '') return null;
  if (language.base === 'en') return ENGLISH_MAGNITUDES.get(word.toLowerCase()) ?? null;
  return MAGNITUDES.test(word) ? word : null;
}

const ENGLISH_MAGNITUDES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ hundred: 'hundred', thousand: 'thousand', million: 'million', billion: 'billion', trillion: 'trillion' },
    ...{ mn: 'million', bn: 'billion', lakh: 'lakh', lakhs: 'lakh', lac: 'lakh', lacs: 'lakh' },
    ...{ crore: 'crore', crores: 'crore', cr: 'crore' },
  }),
);
const MAGNITUDES =
  /^(लाख|करोड़|हज़ार|हजार|अरब|लक्ष|कोटी|লাখ|লক্ষ|কোটি|হাজার|হাজাৰ|லட்சம்|கோடி|ஆயிரம்|లక్ష|లక్షల|కోటి|కోట్ల|వేల|લાખ|કરોડ|હજાર|ಲಕ್ಷ|ಕೋಟಿ|ಸಾವಿರ|ലക്ഷം|കോടി|ആയിരം|ਲੱਖ|ਕਰੋੜ|ਹਜ਼ਾਰ|ଲକ୍ଷ|କୋଟି|ହଜାର|لاکھ|کروڑ|ہزار|lakhs?|crores?|(?:mill|mio|milj|milh|mia|mld|mrd|bill|bilj|млн|млрд|мил)\p{L}*)$/iu;

/** ISO 4217 code of a sign or code. */
function currencyOf(text: string, language: SpokenLanguage): string | null {
  if (text === '¥' || text === '￥') return CHINESE.has(language.base) ? 'CNY' : 'JPY';
  const sign = SIGNS.get(text) ?? SIGNS.get(text.replace(/\.$/, ''));
  if (sign !== undefined) return sign;
  return CODES.has(text) ? text : null;
}

const CHINESE: ReadonlySet<string> = new Set(['zh', 'cmn', 'yue']);

const SIGNS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{
      $: 'USD',
      US$: 'USD',
      '€': 'EUR',
      '£': 'GBP',
      '₹': 'INR',
      Rs: 'INR',
      Re: 'INR',
      RS: 'INR',
      rs: 'INR',
      '₨': 'INR',
    },
    ...{ रु: 'INR', रू: 'INR', রু: 'INR', ரூ: 'INR', రూ: 'INR', રૂ: 'INR', ರೂ: 'INR', രൂ: 'INR', ਰੁ: 'INR', '৳': 'BDT' },
    ...{ A$: 'AUD', AU$: 'AUD', C$: 'CAD', CA$: 'CAD', HK$: 'HKD', NZ$: 'NZD', S$: 'SGD', R$: 'BRL', '￥': 'JPY' },
    ...{ '₩': 'KRW', '₽': 'RUB', '₺': 'TRY', '₫': 'VND', '₱': 'PHP', '₪': 'ILS', '฿': 'THB', '₦': 'NGN', '₴': 'UAH' },
    ...{ '₿': 'BTC', руб: 'RUB', грн: 'UAH', zł: 'PLN', Kč: 'CZK' },
  }),
);
const CODES = new Set([
  ...['USD', 'EUR', 'GBP', 'INR', 'JPY', 'CNY', 'AUD', 'CAD', 'HKD', 'NZD', 'SGD', 'CHF', 'AED', 'SAR', 'QAR', 'KWD'],
  ...['BRL', 'RUB', 'KRW', 'ZAR', 'SEK', 'NOK', 'DKK', 'PLN', 'CZK', 'HUF', 'TRY', 'THB', 'IDR', 'MYR', 'PHP', 'VND'],
  ...['PKR', 'BDT', 'LKR', 'NPR', 'ILS', 'MXN', 'NGN', 'KES', 'EGP', 'UAH', 'BTC'],
]);
