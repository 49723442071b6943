import { toWords as assamese } from 'to-words/as-IN';
import { toWords as bengali } from 'to-words/bn-IN';
import { toWords as gujarati } from 'to-words/gu-IN';
import { toWords as hindi } from 'to-words/hi-IN';
import { toWords as kannada } from 'to-words/kn-IN';
import { toWords as malayalam } from 'to-words/ml-IN';
import { toWords as marathi } from 'to-words/mr-IN';
import { toWords as odia } from 'to-words/or-IN';
import { toWords as punjabi } from 'to-words/pa-IN';
import { toWords as tamil } from 'to-words/ta-IN';
import { toWords as telugu } from 'to-words/te-IN';
import { toWords as urdu } from 'to-words/ur-PK';

/**
 * Numbers in the languages of India. `to-words` has the names of 0 to 99, but composes larger numbers by English
 * grammar: Dravidian languages inflect and join hundreds and thousands, Bengali and Assamese have joined hundreds.
 */
export function indianCardinal(language: string): ((whole: number) => string) | null {
  const grammar = GRAMMARS[language];
  if (grammar === undefined) return null;
  return (whole) => (whole === 0 ? grammar.small[0]! : compose(whole, grammar));
}

interface Grammar {
  small: readonly string[];
  /** 100, 200, ... 900 alone. */
  hundreds: readonly string[];
  /** The same before a smaller number. */
  hundredsBefore: readonly string[];
  thousands(count: number, isLast: boolean): string;
  lakhs(count: number, isLast: boolean): string;
  crores(count: string, isLast: boolean, isOne: boolean): string;
}

function compose(whole: number, grammar: Grammar): string {
  const words: string[] = [];
  let rest = whole;
  const crores = Math.floor(rest / 1e7);
  rest %= 1e7;
  if (crores > 0) words.push(grammar.crores(compose(crores, grammar), rest === 0, crores === 1));
  const lakhs = Math.floor(rest / 1e5);
  rest %= 1e5;
  if (lakhs > 0) words.push(grammar.lakhs(lakhs, rest === 0));
  const thousands = Math.floor(rest / 1000);
  rest %= 1000;
  if (thousands > 0) words.push(grammar.thousands(thousands, rest === 0));
  const hundreds = Math.floor(rest / 100);
  rest %= 100;
  if (hundreds > 0) words.push((rest === 0 ? grammar.hundreds : grammar.hundredsBefore)[hundreds - 1]!);
  if (rest > 0) words.push(grammar.small[rest]!);
  return words.join(' ');
}

function namesOf(toWords: (number: number) => string, corrections: Record<number, string> = {}): readonly string[] {
  return Array.from({ length: 100 }, (_, number) => corrections[number] ?? toWords(number));
}

interface PlainScales {
  hundred: string;
  /** Where each hundred is a single word. */
  hundreds?: readonly string[];
  /** 100 alone, if it is a different word. */
  aHundred?: string;
  thousand: string;
  lakh: string;
  crore: string;
}

/** Indo-Aryan: count and scale side by side, unchanged. */
function plain(small: readonly string[], { hundred, hundreds, aHundred, thousand, lakh, crore }: PlainScales): Grammar {
  const before = hundreds ?? Array.from({ length: 9 }, (_, n) => `${small[n + 1]} ${hundred}`);
  return {
    small,
    hundreds: aHundred === undefined ? before : [aHundred, ...before.slice(1)],
    hundredsBefore: before,
    thousands: (count) => `${small[count]} ${thousand}`,
    lakhs: (count) => `${small[count]} ${lakh}`,
    crores: (count) => `${count} ${crore}`,
  };
}

const TAMIL = namesOf(tamil);
const TELUGU = namesOf(telugu);
const KANNADA = namesOf(kannada);
const MALAYALAM = namesOf(malayalam);
const MARATHI = namesOf(marathi);
const GUJARATI = namesOf(gujarati);

const GRAMMARS: Record<string, Grammar> = {
  hi: plain(namesOf(hindi, { 51: 'इक्यावन' }), { hundred: 'सौ', thousand: 'हज़ार', lakh: 'लाख', crore: 'करोड़' }),
  ur: plain(namesOf(urdu), { hundred: 'سو', thousand: 'ہزار', lakh: 'لاکھ', crore: 'کروڑ' }),
  pa: plain(namesOf(punjabi), { hundred: 'ਸੌ', thousand: 'ਹਜ਼ਾਰ', lakh: 'ਲੱਖ', crore: 'ਕਰੋੜ' }),
  or: plain(namesOf(odia, { 0: 'ଶୂନ୍ୟ' }), {
    hundred: 'ଶହ',
    aHundred: 'ଶହେ',
    thousand: 'ହଜାର',
    lakh: 'ଲକ୍ଷ',
    crore: 'କୋଟି',
  }),
  gu: plain(GUJARATI, {
    hundred: 'સો',
    hundreds: GUJARATI.slice(1, 10).map((count) => (count === 'બે' ? 'બસો' : `${count} સો`)),
    thousand: 'હજાર',
    lakh: 'લાખ',
    crore: 'કરોડ',
  }),
  mr: plain(MARATHI, {
    hundred: 'शे',
    hundreds: MARATHI.slice(1, 10).map((count) => `${count}शे`),
    aHundred: 'शंभर',
    thousand: 'हजार',
    lakh: 'लाख',
    crore: 'कोटी',
  }),
  bn: plain(namesOf(bengali, { 45: 'পঁয়তাল্লিশ', 35: 'পঁয়ত্রিশ' }), {
    hundred: 'শ',
    hundreds: ['একশ', 'দুইশ', 'তিনশ', 'চারশ', 'পাঁচশ', 'ছয়শ', 'সাতশ', 'আটশ', 'নয়শ'],
    thousand: 'হাজার',
    lakh: 'লাখ',
    crore: 'কোটি',
  }),
  as: plain(namesOf(assamese), {
    hundred: 'শ',
    hundreds: ['এশ', 'দুশ', 'তিনিশ', 'চাৰিশ', 'পাঁচশ', 'ছশ', 'সাতশ', 'আঠশ', 'নশ'],
    thousand: 'হাজাৰ',
    lakh: 'লাখ',
    crore: 'কোটি',
  }),
  ta: {
    small: TAMIL,
    hundreds: ['நூறு', 'இருநூறு', 'முந்நூறு', 'நானூறு', 'ஐந்நூறு', 'அறுநூறு', 'எழுநூறு', 'எண்ணூறு', 'தொள்ளாயிரம்'],
    hundredsBefore: [
      ...['நூற்று', 'இருநூற்று', 'முந்நூற்று', 'நானூற்று', 'ஐந்நூற்று'],
      ...['அறுநூற்று', 'எழுநூற்று', 'எண்ணூற்று', 'தொள்ளாயிரத்து'],
    ],
    thousands(count, isLast) {
      const ending = isLast ? 'யிரம்' : 'யிரத்து';
      if (count === 1) return `ஆ${ending}`;
      if (count === 5) return `ஐயா${ending}`;
      // The names end in a short u, which the vowel of "thousand" replaces.
      return `${TAMIL[count]!.replace(/\u0bc1$/u, '')}ா${ending}`;
    },
    lakhs: (count, isLast) => `${count === 1 ? 'ஒரு' : TAMIL[count]} ${isLast ? 'லட்சம்' : 'லட்சத்து'}`,
    crores: (count, isLast, isOne) => `${isOne ? 'ஒரு' : count} ${isLast ? 'கோடி' : 'கோடியே'}`,
  },
  te: {
    small: TELUGU,
    hundreds: TELUGU.slice(1, 10).map((count, index) => (index === 0 ? 'వంద' : `${count} వందలు`)),
    hundredsBefore: TELUGU.slice(1, 10).map((count, index) => (index === 0 ? 'నూట' : `${count} వందల`)),
    thousands: (count, isLast) => (count === 1 ? 'వెయ్యి' : `${TELUGU[count]} ${isLast ? 'వేలు' : 'వేల'}`),
    lakhs: (count, isLast) => (count === 1 ? 'లక్ష' : `${TELUGU[count]} ${isLast ? 'లక్షలు' : 'లక్షల'}`),
    crores: (count, isLast, isOne) => (isOne ? 'కోటి' : `${count} ${isLast ? 'కోట్లు' : 'కోట్ల'}`),
  },
  kn: {
    small: KANNADA,
    hundreds: ['ನೂರು', 'ಇನ್ನೂರು', 'ಮುನ್ನೂರು', 'ನಾನೂರು', 'ಐನೂರು', 'ಆರುನೂರು', 'ಏಳುನೂರು', 'ಎಂಟುನೂರು', 'ಒಂಬೈನೂರು'],
    hundredsBefore: ['ನೂರ', 'ಇನ್ನೂರ', 'ಮುನ್ನೂರ', 'ನಾನೂರ', 'ಐನೂರ', 'ಆರುನೂರ', 'ಏಳುನೂರ', 'ಎಂಟುನೂರ', 'ಒಂಬೈನೂರ'],
    thousands: (count, isLast) => `${KANNADA[count]} ${isLast ? 'ಸಾವಿರ' : 'ಸಾವಿರದ'}`,
    lakhs: (count, isLast) => `${KANNADA[count]} ${isLast ? 'ಲಕ್ಷ' : 'ಲಕ್ಷದ'}`,
    crores: (count, isLast) => `${count} ${isLast ? 'ಕೋಟಿ' : 'ಕೋಟಿಯ'}`,
  },
  ml: {
    small: MALAYALAM,
    hundreds: ['നൂറ്', 'ഇരുനൂറ്', 'മുന്നൂറ്', 'നാനൂറ്', 'അഞ്ഞൂറ്', 'അറുനൂറ്', 'എഴുനൂറ്', 'എണ്ണൂറ്', 'തൊള്ളായിരം'],
    hundredsBefore: [
      ...['നൂറ്റി', 'ഇരുനൂറ്റി', 'മുന്നൂറ്റി', 'നാനൂറ്റി', 'അഞ്ഞൂറ്റി'],
      ...['അറുനൂറ്റി', 'എഴുനൂറ്റി', 'എണ്ണൂറ്റി', 'തൊള്ളായിരത്തി'],
    ],
    thousands: (count, isLast) => `${malayalamThousand(count)}${isLast ? 'യിരം' : 'യിരത്തി'}`,
    lakhs: (count, isLast) => `${count === 1 ? 'ഒരു' : MALAYALAM[count]} ${isLast ? 'ലക്ഷം' : 'ലക്ഷത്തി'}`,
    crores: (count, isLast, isOne) => `${isOne ? 'ഒരു' : count} ${isLast ? 'കോടി' : 'കോടി'}`,
  },
};

/** Up to the "a" of `ayiram`: units join, tens take `in`. */
function malayalamThousand(count: number): string {
  if (count === 1) return 'ആ';
  if (count % 10 === 3 && count !== 13) return `${MALAYALAM[count]!.replace(/മൂന്ന്$/u, '')}മൂവാ`;
  if (count % 10 === 5 && count !== 15) return `${MALAYALAM[count]!.replace(/അഞ്ച്$/u, '')}അയ്യാ`;
  const stem = MALAYALAM[count]!.replace(/\u0d4d$/u, '');
  if (count === 10) return 'പതിനാ';
  return count % 10 === 0 && count !== 90 ? `${stem}ിനാ` : `${stem}ാ`;
}
