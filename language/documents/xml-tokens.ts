/**
 * Removes comments from XML, and measures the other tokens (tags, CDATA sections, processing instructions, texts). Parsers
 * that read in chunks parse an incomplete token again with each chunk, which takes quadratic time for a long token.
 * @throws RangeError if a token is longer than `most` characters
 */
export function withoutComments(xml: string, most: number): string {
  let position = 0;
  const kept = replaceTokens(xml, (start, end) => {
    requireLength(start - position, most);
    position = end;
    if (xml.startsWith('<!--', start)) return '';
    requireLength(end - start, most);
    return null;
  });
  requireLength(xml.length - position, most);
  return kept;
}

const CDATA = '<![CDATA[';
const CDATA_END = ']]>';

/** Replaces CDATA sections by escaped text, because the libraries that read Office files skip them. */
export function withCdataAsText(part: Buffer): Buffer {
  if (!part.includes(CDATA)) return part;
  const xml = part.toString();
  const replaced = replaceTokens(xml, (start, end) => {
    if (!xml.startsWith(CDATA, start) || !xml.endsWith(CDATA_END, end)) return null;
    const text = xml.slice(start + CDATA.length, end - CDATA_END.length);
    return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  });
  return Buffer.from(replaced);
}

/** @param replacementOf called for each token but texts, in order. Null keeps the token. */
function replaceTokens(xml: string, replacementOf: (start: number, end: number) => string | null): string {
  const kept: string[] = [];
  let keptUntil = 0;
  for (let start = xml.indexOf('<'), end = 0; start !== -1; start = xml.indexOf('<', end)) {
    end = endOfToken(xml, start);
    const replacement = replacementOf(start, end);
    if (replacement === null) continue;
    kept.push(xml.slice(keptUntil, start), replacement);
    keptUntil = end;
  }
  kept.push(xml.slice(keptUntil));
  return kept.join('');
}

function requireLength(length: number, most: number): void {
  if (length > most) throw new RangeError(`an XML token is longer than ${most} characters`);
}

const ENDS = [
  ['<!--', '-->'],
  [CDATA, CDATA_END],
  ['<?', '?>'],
] as const;

/** Index after the token; the end of the text if it is unclosed. */
function endOfToken(xml: string, start: number): number {
  for (const [opening, closing] of ENDS) {
    if (!xml.startsWith(opening, start)) continue;
    const end = xml.indexOf(closing, start + opening.length);
    return end === -1 ? xml.length : end + closing.length;
  }
  return endOfTag(xml, start);
}

/** Attribute values may contain `>`. */
function endOfTag(xml: string, start: number): number {
  for (let i = start + 1; i < xml.length; i++) {
    const char = xml[i];
    if (char === '>') return i + 1;
    if (char !== '"' && char !== "'") continue;
    const quote = xml.indexOf(char, i + 1);
    if (quote === -1) break;
    i = quote;
  }
  return xml.length;
}
