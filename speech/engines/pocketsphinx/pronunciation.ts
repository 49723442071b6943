/**
 * Guesses the pronunciation of an English word in phones of the CMU dictionary. Applies spelling rules from the left,
 * longest first: right for regular words and most names, wrong where English spelling is irregular.
 */
export function pronunciationOf(spelling: string): string | null {
  const word = spelling.toLowerCase();
  if (!/^[a-z0-9']+$/.test(word) || !/[a-z0-9]/.test(word)) return null;
  const phones = isSpelledOut(spelling)
    ? [...word].flatMap((character) => NAMES.get(character) ?? [])
    : word.split(/(\d)/).flatMap((part) => NAMES_OF_DIGITS.get(part) ?? phonesOf(part.replaceAll("'", '')));
  return phones.length === 0 ? null : phones.join(' ');
}

/** An abbreviation in capitals, or a word without a vowel. */
function isSpelledOut(spelling: string): boolean {
  return /^[A-Z0-9]{2,5}$/.test(spelling)
    ? /\d/.test(spelling) || spelling.length <= 4
    : !/[aeiouy0-9]/i.test(spelling);
}

function phonesOf(word: string): string[] {
  const phones: string[] = [];
  for (let at = 0; at < word.length; ) {
    const rule = RULES.find(({ letters, after, before }) => {
      if (!word.startsWith(letters, at)) return false;
      const left = after === undefined || after.test(word.slice(0, at));
      return left && (before === undefined || before.test(word.slice(at + letters.length)));
    });
    if (rule?.phones) phones.push(...rule.phones.split(' '));
    at += rule?.letters.length ?? 1;
  }
  return phones.filter((phone, index) => phone !== phones[index - 1]);
}

interface Rule {
  letters: string;
  phones: string;
  /** Pattern before the letters. */
  after?: RegExp;
  /** Pattern after them. */
  before?: RegExp;
}

const START = /^$/;
const END = /^$/;
const SOFTENING = /^[eiy]/;
/** One consonant, then a silent e: the vowel is long. */
const MAGIC_E = /^(?![wxy])[^aeiou]e(s|d)?$/;
const NEXT_VOWEL = /^[aeiouy]/;
/** One consonant between two vowels opens the previous syllable. */
const OPEN = /^(?![wxy])[^aeiou][aeiouy]/;

const RULES: readonly Rule[] = [
  rule('tion', 'SH AH N'),
  rule('sion', 'ZH AH N'),
  rule('ture', 'CH ER', { before: END }),
  rule('ough', 'AO'),
  rule('augh', 'AO'),
  rule('eigh', 'EY'),
  rule('igh', 'AY'),
  rule('tch', 'CH'),
  rule('sch', 'S K'),
  rule('dge', 'JH'),
  rule('que', 'K', { before: END }),
  rule('eau', 'OW'),
  rule('ous', 'AH S', { before: END }),
  rule('air', 'EH R'),
  rule('ear', 'IH R'),
  rule('eer', 'IH R'),
  rule('ier', 'IY ER', { before: END }),
  rule('oor', 'AO R'),
  rule('our', 'AO R'),
  rule('are', 'EH R', { before: END }),
  rule('ire', 'AY ER', { before: END }),
  rule('ore', 'AO R', { before: END }),
  rule('ure', 'Y UH R', { before: END }),
  rule('ing', 'IH NG', { before: END }),
  rule('all', 'AO L'),
  rule('alk', 'AO K'),
  rule('ch', 'CH'),
  rule('ck', 'K'),
  rule('cc', 'K S', { before: SOFTENING }),
  rule('gh', 'G', { after: START }),
  rule('gh', ''),
  rule('gn', 'N', { after: START }),
  rule('kn', 'N', { after: START }),
  rule('ng', 'NG', { before: END }),
  rule('nk', 'NG K'),
  rule('ph', 'F'),
  rule('ps', 'S', { after: START }),
  rule('qu', 'K W'),
  rule('sc', 'S', { before: SOFTENING }),
  rule('sh', 'SH'),
  rule('th', 'TH'),
  rule('wh', 'W'),
  rule('wr', 'R', { after: START }),
  rule('mb', 'M', { before: END }),
  rule('ai', 'EY'),
  rule('ay', 'EY'),
  rule('au', 'AO'),
  rule('aw', 'AO'),
  rule('ar', 'AA R'),
  rule('ea', 'IY'),
  rule('ee', 'IY'),
  rule('ei', 'IY'),
  rule('ey', 'IY'),
  rule('eu', 'Y UW'),
  rule('ew', 'Y UW'),
  rule('er', 'ER'),
  rule('ie', 'IY'),
  rule('ir', 'ER'),
  rule('oa', 'OW'),
  rule('oi', 'OY'),
  rule('oy', 'OY'),
  rule('oo', 'UW'),
  rule('ou', 'AW'),
  rule('ow', 'OW', { before: END }),
  rule('ow', 'AW'),
  rule('or', 'AO R'),
  rule('ue', 'UW', { before: END }),
  rule('ui', 'UW'),
  rule('ur', 'ER'),
  rule('le', 'AH L', { after: /[bcdfgkptz]$/, before: END }),
  rule('ed', 'D', { after: /[aeiou].*[^td]$/, before: END }),
  rule('es', 'Z', { after: /[aeiou].*[^sxz]$/, before: END }),
  rule('a', 'EY', { before: MAGIC_E }),
  rule('a', 'AH', { before: END }),
  rule('a', 'EY', { before: OPEN, after: START }),
  rule('a', 'AE'),
  rule('e', 'IY', { before: MAGIC_E }),
  rule('e', '', { after: /[aeiouy].*[^aeiouy]$/, before: END }),
  rule('e', 'IY', { before: END }),
  rule('e', 'EH'),
  rule('i', 'AY', { before: MAGIC_E }),
  rule('i', 'IY', { before: END }),
  rule('i', 'IY', { before: NEXT_VOWEL }),
  rule('i', 'IH'),
  rule('o', 'OW', { before: MAGIC_E }),
  rule('o', 'OW', { before: END }),
  rule('o', 'OW', { before: OPEN }),
  rule('o', 'AA'),
  rule('u', 'UW', { before: MAGIC_E }),
  rule('u', 'UW', { before: END }),
  rule('u', 'UW', { before: OPEN }),
  rule('u', 'AH'),
  rule('y', 'Y', { before: NEXT_VOWEL }),
  rule('y', 'AY', { after: /^[^aeiou]+$/, before: END }),
  rule('y', 'IY', { before: END }),
  rule('y', 'IH'),
  rule('b', 'B'),
  rule('c', 'S', { before: SOFTENING }),
  rule('c', 'K'),
  rule('d', 'D'),
  rule('f', 'F'),
  rule('g', 'JH', { before: /^[ey]/ }),
  rule('g', 'G'),
  rule('h', 'HH', { before: NEXT_VOWEL }),
  rule('h', ''),
  rule('j', 'JH'),
  rule('k', 'K'),
  rule('l', 'L'),
  rule('m', 'M'),
  rule('n', 'N'),
  rule('p', 'P'),
  rule('q', 'K'),
  rule('r', 'R'),
  rule('s', 'Z', { after: /[aeiouybdglmnrv]$/, before: END }),
  rule('s', 'S'),
  rule('t', 'T'),
  rule('v', 'V'),
  rule('w', 'W', { before: NEXT_VOWEL }),
  rule('w', ''),
  rule('x', 'Z', { after: START }),
  rule('x', 'K S'),
  rule('z', 'Z'),
];

function rule(letters: string, phones: string, context: Pick<Rule, 'after' | 'before'> = {}): Rule {
  return { letters, phones, ...context };
}

const NAMES_OF_DIGITS: ReadonlyMap<string, readonly string[]> = new Map([
  ['0', ['Z', 'IH', 'R', 'OW']],
  ['1', ['W', 'AH', 'N']],
  ['2', ['T', 'UW']],
  ['3', ['TH', 'R', 'IY']],
  ['4', ['F', 'AO', 'R']],
  ['5', ['F', 'AY', 'V']],
  ['6', ['S', 'IH', 'K', 'S']],
  ['7', ['S', 'EH', 'V', 'AH', 'N']],
  ['8', ['EY', 'T']],
  ['9', ['N', 'AY', 'N']],
]);

const NAMES: ReadonlyMap<string, readonly string[]> = new Map([
  ...NAMES_OF_DIGITS,
  ['a', ['EY']],
  ['b', ['B', 'IY']],
  ['c', ['S', 'IY']],
  ['d', ['D', 'IY']],
  ['e', ['IY']],
  ['f', ['EH', 'F']],
  ['g', ['JH', 'IY']],
  ['h', ['EY', 'CH']],
  ['i', ['AY']],
  ['j', ['JH', 'EY']],
  ['k', ['K', 'EY']],
  ['l', ['EH', 'L']],
  ['m', ['EH', 'M']],
  ['n', ['EH', 'N']],
  ['o', ['OW']],
  ['p', ['P', 'IY']],
  ['q', ['K', 'Y', 'UW']],
  ['r', ['AA', 'R']],
  ['s', ['EH', 'S']],
  ['t', ['T', 'IY']],
  ['u', ['Y', 'UW']],
  ['v', ['V', 'IY']],
  ['w', ['D', 'AH', 'B', 'AH', 'L', 'Y', 'UW']],
  ['x', ['EH', 'K', 'S']],
  ['y', ['W', 'AY']],
  ['z', ['Z', 'IY']],
]);
