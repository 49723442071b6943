/**
 * Rewrites elements that mammoth skips, together with their text, as elements that it reads: results of simple fields,
 * ruby base text, text with a direction of its own, formulas, and further line breaks and tabs.
 */
export function withKnownElements(parts: ReadonlyMap<string, Buffer>): Map<string, Buffer> {
  return new Map(
    [...parts].map(([name, bytes]) => [name, UNKNOWN.some((tag) => bytes.includes(tag)) ? known(bytes) : bytes]),
  );
}

const UNKNOWN = ['<w:fldSimple', '<w:rubyBase', '<w:dir', '<w:bdo', '<w:cr', '<w:ptab', '<m:oMath'];

function known(bytes: Buffer): Buffer {
  const xml = bytes
    .toString()
    .replace(/(<\/?)w:(?:fldSimple|ruby|rubyBase|dir|bdo)(?=[\s>])/g, '$1w:smartTag')
    .replace(/(<\/?)w:cr(?=[\s>/])/g, '$1w:br')
    .replace(/(<\/?)w:ptab(?=[\s>/])/g, '$1w:tab');
  return Buffer.from(MATH.test(xml) ? xml.replace(/<(\/?)m:([A-Za-z]+)([^<>]*)>/g, mathElement) : xml);
}

const MATH = /xmlns:m="http:\/\/schemas\.openxmlformats\.org\/officeDocument\/2006\/math"/;

/** Converts Office MathML (ECMA-376 part 1, 22.1) to runs of text. Adds signs where only the layout carries meaning. */
function mathElement(_: string, slash: string, name: string, rest: string): string {
  const tag = name === 'r' || name === 't' ? `w:${name}` : 'w:smartTag';
  const isOpening = slash === '' && !rest.endsWith('/');
  const sign = isOpening ? BEFORE.get(name) : slash === '' ? undefined : AFTER.get(name);
  const signRun = sign === undefined ? '' : `<w:r><w:t>${sign}</w:t></w:r>`;
  const element = `<${slash}${tag}${rest}>`;
  return isOpening ? element + signRun : signRun + element;
}

const BEFORE = new Map([
  ['num', '('],
  ['den', '('],
  ['sup', '^'],
  ['sub', '_'],
  ['rad', '√('],
]);
const AFTER = new Map([
  ['num', ')/'],
  ['den', ')'],
  ['rad', ')'],
]);
