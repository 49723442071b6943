/** Converts IPA to a voice's eSpeak NG mnemonics, because eSpeak NG does not accept IPA. */
export class IpaReader {
  readonly #mnemonics = new Map<string, string>();
  readonly #longest: number;

  /** `soundOf` returns the IPA that the engine speaks for a mnemonic, '' for none. */
  constructor(mnemonics: readonly string[], soundOf: (mnemonic: string) => string) {
    for (const [ipa, mnemonic] of USUAL) this.#mnemonics.set(ipa, mnemonic);
    const known = new Set<string>();
    for (const mnemonic of mnemonics) {
      const ipa = normalise(soundOf(mnemonic)).replace(/[ˈˌ]/g, '');
      // A language has several mnemonics for a sound, by origin; the first will do.
      if (ipa === '' || known.has(ipa)) continue;
      known.add(ipa);
      this.#mnemonics.set(ipa, mnemonic);
    }
    this.#longest = Math.max(...[...this.#mnemonics.keys()].map((ipa) => [...ipa].length));
  }

  /** Null if the language lacks one of the sounds. */
  read(ipa: string): string | null {
    const symbols = [...normalise(ipa)];
    let read = '';
    let isAfterSound = false;
    for (let at = 0; at < symbols.length; ) {
      const length = this.#longestAt(symbols, at);
      if (length === 0) return null;
      const isStress = STRESS.has(symbols[at]!);
      if (isAfterSound && !isStress) read += SEPARATOR;
      read += this.#mnemonics.get(symbols.slice(at, at + length).join(''));
      isAfterSound = !isStress;
      at += length;
    }
    return isAfterSound ? read : null;
  }

  #longestAt(symbols: readonly string[], at: number): number {
    for (let length = Math.min(this.#longest, symbols.length - at); length > 0; length--) {
      if (this.#mnemonics.has(symbols.slice(at, at + length).join(''))) return length;
    }
    return 0;
  }
}

/** Separates mnemonics that would otherwise read as one. */
const SEPARATOR = '|';
const STRESS = new Set(['ˈ', 'ˌ']);

/** Common to all languages, unless their tables differ; syllable marks and ties have no effect. */
const USUAL: readonly [ipa: string, mnemonic: string][] = [
  ['ˈ', "'"],
  ['ˌ', ','],
  ['ɪ', 'I'],
  ['ʊ', 'U'],
  ['ɛ', 'E'],
  ['ɔ', 'O'],
  ['ə', '@'],
  ['ʌ', 'V'],
  ['ɑ', 'A'],
  ['æ', 'a'],
  ['ɜ', '3'],
  ['ŋ', 'N'],
  ['ʃ', 'S'],
  ['ʒ', 'Z'],
  ['θ', 'T'],
  ['ð', 'D'],
  ['ɹ', 'r'],
  ['tʃ', 'tS'],
  ['dʒ', 'dZ'],
];

function normalise(ipa: string): string {
  return ipa
    .normalize('NFD')
    .replaceAll("'", 'ˈ')
    .replaceAll(':', 'ː')
    .replaceAll('g', 'ɡ')
    .replace(/\s|\u0361|\u035c|[./[\]_]/gu, '');
}
