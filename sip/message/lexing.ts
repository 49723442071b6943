/**
 * Splits a header value at the commas outside quoted strings and outside `<...>` (RFC 3261 §7.3.1). Drops empty
 * elements.
 */
export function splitList(value: string): string[] {
  if (!value.includes(',')) {
    const only = value.trim();
    return only === '' ? [] : [only];
  }
  return splitOutsideQuotes(value, ',').filter((element) => element !== '');
}

/** Parses parameters after a value: `;a=1;lr;b="x;y"`. Names in lower case, values unquoted, flags `null`. */
export function parseParameters(text: string): Map<string, string | null> {
  const parameters = new Map<string, string | null>();
  for (const part of splitOutsideQuotes(text, ';')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = (equals === -1 ? part : part.slice(0, equals)).trim().toLowerCase();
    if (name === '' || parameters.has(name)) continue;
    parameters.set(name, equals === -1 ? null : unquote(part.slice(equals + 1).trim()));
  }
  return parameters;
}

/** @param bare matches values that need no quotes */
export function formatParameters(
  parameters: ReadonlyMap<string, string | null>,
  bare: RegExp = PARAMETER_VALUE,
): string {
  let text = '';
  for (const [name, value] of parameters) {
    if (value === null) text += `;${name}`;
    else text += `;${name}=${bare.test(value) ? value : quote(value)}`;
  }
  return text;
}

/** Index after the closing quote of the quoted string that starts at `start`, or -1 if it is not closed. */
export function endOfQuotedString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const character = text[at];
    if (character === '\\') at++;
    else if (character === '"') return at + 1;
  }
  return -1;
}

export function quote(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

export function unquote(text: string): string {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return text;
  return text.slice(1, -1).replace(/\\([\s\S])/g, '$1');
}

/** Trims the white space of SIP (RFC 3261 §25.1). `trim` would also remove a byte order mark or U+00A0. */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0d || code === 0x0a;
}

export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

function splitOutsideQuotes(text: string, separator: ',' | ';'): string[] {
  const parts: string[] = [];
  let start = 0;
  let insideBrackets = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"' && !insideBrackets) {
      const end = endOfQuotedString(text, at);
      if (end === -1) break;
      at = end - 1;
    } else if (character === '<') insideBrackets = true;
    else if (character === '>') insideBrackets = false;
    else if (character === separator && !insideBrackets) {
      parts.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  parts.push(text.slice(start).trim());
  return parts;
}

/** token of RFC 3261 §25.1. */
const TOKEN = /^[A-Za-z0-9\-.!%*_+`'~]+$/;
/** token or host, including IPv6 references; anything else must be quoted. */
const PARAMETER_VALUE = /^(?:[A-Za-z0-9\-.!%*_+`'~:]+|\[[0-9A-Fa-f:.]+\])$/;
