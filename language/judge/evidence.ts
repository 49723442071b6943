/** Looks quotes up in what was judged. */
export interface QuoteFinder {
  /** The quote as it stands there; null where it does not. */
  find(quote: string): string | null;
}

/** Of longer texts so much is read at a time, that others get their turn. */
const SLICE = 8_192;
/** A quote of fewer letters and digits shows nothing. */
const LEAST_LETTERS = 2;

/**
 * A model copies with small liberties: other quotation marks and dashes, other spaces, another case, no invisible
 * characters. So both sides are brought to one form, with the place that each piece of it came from. A quote may reach
 * over several texts.
 */
export async function quoteFinder(texts: readonly string[]): Promise<QuoteFinder> {
  const original = texts.join('\n');
  const form = new PlainForm();
  for (let from = 0; from < original.length; ) {
    const to = sliceEnd(original, from);
    form.append(original, { from, to });
    from = to;
    if (from < original.length) await new Promise((resolve) => setImmediate(resolve));
  }
  const { text: haystack, places } = form;
  return {
    find(quote) {
      const wanted = new PlainForm();
      wanted.append(quote, { from: 0, to: quote.length });
      const needle = trimmed(wanted.text);
      if ((needle.match(/[\p{L}\p{N}]/gu)?.length ?? 0) < LEAST_LETTERS) return null;
      const at = haystack.indexOf(needle);
      if (at < 0) return null;
      const last = places[at + needle.length - 1]!;
      return original.slice(places[at], last + (original.codePointAt(last)! > 0xffff ? 2 : 1));
    },
  };
}

/** Spaces and quotation marks around a quote are the model's. */
function trimmed(text: string): string {
  return text
    .replace(/^['" ]+|['" ]+$/g, '')
    .replace(/^(\.\.\.)+|(\.\.\.)+$/g, '')
    .trim();
}

/** Not between the halves of a surrogate pair. */
function sliceEnd(text: string, from: number): number {
  const end = Math.min(text.length, from + SLICE);
  const isHigh = end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
  return isHigh ? end + 1 : end;
}

/** Text in one form, and for each unit of it the place in the original. */
class PlainForm {
  readonly places: number[] = [];
  text = '';
  #endsWithSpace = true;

  append(original: string, { from, to }: { from: number; to: number }): void {
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
  }
}

function plainOf(code: number): string {
  const known = KNOWN.get(code);
  if (known !== undefined) return known;
  const plain = plainly(String.fromCodePoint(code));
  if (KNOWN.size < 10_000) KNOWN.set(code, plain);
  return plain;
}

/** Decomposed, so that a letter and its accent are the same however they were written. */
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
