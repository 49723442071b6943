/**
 * Normalized text: models copy with other quotation marks, dashes, spaces, case, accents and invisible characters. Maps
 * each code unit to its place in the original.
 */
export class PlainForm {
  readonly places: number[] = [];
  text = '';
  #endsWithSpace = true;

  append(original: string, { from, to }: { from: number; to: number }): this {
    const { places } = this;
    let text = '';
    for (let at = from; at < to; ) {
      const code = original.codePointAt(at)!;
      const plain = code < 128 ? ASCII[code]! : plainOf(code);
      if (plain !== '' && (plain !== ' ' || !this.#endsWithSpace)) {
        for (let unit = 0; unit < plain.length; unit++) places.push(at);
        text += plain;
        this.#endsWithSpace = plain === ' ';
      }
      at += code > 0xffff ? 2 : 1;
    }
    this.text += text;
    return this;
  }
}

export function plainForm(text: string): PlainForm {
  return new PlainForm().append(text, { from: 0, to: text.length });
}

function plainOf(code: number): string {
  const known = KNOWN.get(code);
  if (known !== undefined) return known;
  const plain = plainly(String.fromCodePoint(code));
  if (KNOWN.size < 10_000) KNOWN.set(code, plain);
  return plain;
}

/** Decomposes letters and accents, so that both Unicode forms compare equal. */
function plainly(character: string): string {
  if (/^\p{Default_Ignorable_Code_Point}$/u.test(character)) return '';
  if (/^[\s\p{Z}\p{Cc}]$/u.test(character)) return ' ';
  if (/^[\u2018\u2019\u201a\u201b\u2032\u0060\u00b4]$/u.test(character)) return "'";
  if (/^[\u00ab\u00bb\u201c\u201d\u201e\u201f\u2033]$/u.test(character)) return '"';
  if (/^\p{Pd}$/u.test(character) || character === '\u2212') return '-';
  return character.normalize('NFKD').toLowerCase();
}

const ASCII = Array.from({ length: 128 }, (_, code) => plainly(String.fromCharCode(code)));
const KNOWN = new Map<number, string>();
