/** Turns IPA into eSpeak NG's mnemonics for a voice: it takes none itself. */
export class IpaReader {
  readonly #mnemonics = new Map<string, string>();
  readonly #longest: number;

  /** `soundOf` answers with the IPA that the engine says it speaks for a mnemonic, '' for none. */
  constructor(mnemonics: readonly string[], soundOf: (mnemonic: string) => string) {
    for (const [ipa, mnemonic] of USUAL) this.#mnemonics.set(ipa, mnemonic);
    const known = new Set<string>();
    for (const mnemonic of mnemonics) {
      const ipa = normalise(soundOf(mnemonic)).replace(/[ˈˌ]/g, '');
      // A language has several for a sound, as it comes about; the first is as good as any.
      if (ipa === '' || known.has(ipa)) continue;
      known.add(ipa);
      this.#mnemonics.set(ipa, mnemonic);
    }
    this.#longest = Math.max(...[...this.#mnemonics.keys()].map((ipa) => [...ipa].length));
  }

  /** Null when it has a sound that the language has not. */
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

/** Keeps mnemonics apart that would read as one. */
const SEPARATOR = '|';
const STRESS = new Set(['ˈ', 'ˌ']);

/** The same whatever alphabet of a language, unless its table says otherwise; syllable marks and ties say nothing to it. */
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
