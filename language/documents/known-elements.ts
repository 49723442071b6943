/**
 * The parts of a Word document, in which elements that mammoth passes over with all the text in them are such that it
 * reads: results of simple fields, what ruby stands above, and formulas.
 */
export function withKnownElements(parts: ReadonlyMap<string, Buffer>): Map<string, Buffer> {
  return new Map(
    [...parts].map(([name, bytes]) => [name, UNKNOWN.some((tag) => bytes.includes(tag)) ? known(bytes) : bytes]),
  );
}

const UNKNOWN = ['<w:fldSimple', '<w:rubyBase', '<m:oMath'];

function known(bytes: Buffer): Buffer {
  const xml = bytes.toString().replace(/(<\/?)w:(?:fldSimple|ruby|rubyBase)(?=[\s>])/g, '$1w:smartTag');
  return Buffer.from(MATH.test(xml) ? xml.replace(/<(\/?)m:([A-Za-z]+)([^<>]*)>/g, mathElement) : xml);
}

const MATH = /xmlns:m="http:\/\/schemas\.openxmlformats\.org\/officeDocument\/2006\/math"/;

/** Office MathML (ECMA-376 part 1, 22.1) as runs of text, with signs where only its place tells what a piece is. */
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
