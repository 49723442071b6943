import { endOfQuotedString, formatParameters, isToken, parseParameters, quote, unquote } from './lexing.ts';
import { SipParseError } from './parse-error.ts';

/** A From, To, Contact, Route or Record-Route value (RFC 3261 §20.10). `uri` is not parsed further. */
export interface NameAddr {
  displayName: string | null;
  uri: string;
  /** Header parameters such as `tag`; names in lower case, values unquoted, flags `null`. */
  params: Map<string, string | null>;
}

/** @throws SipParseError `BAD_NAME_ADDR`. A Contact of `*` has the URI `*`. */
export function parseNameAddr(text: string): NameAddr {
  const value = text.trim();
  const nameEnd = value.startsWith('"') ? endOfQuotedString(value, 0) : 0;
  if (nameEnd === -1) throw new SipParseError('BAD_NAME_ADDR', 'A quoted display name never ends');
  const open = value.indexOf('<', nameEnd);
  if (open === -1) return parseBareAddress(value, nameEnd);

  const close = value.indexOf('>', open);
  if (close === -1) throw new SipParseError('BAD_NAME_ADDR', 'An address misses its closing bracket');
  const between = value.slice(nameEnd, open).trim();
  if (nameEnd > 0 && between !== '') throw new SipParseError('BAD_NAME_ADDR', 'Text follows a quoted display name');
  const after = value.slice(close + 1).trim();
  if (after !== '' && !after.startsWith(';')) {
    throw new SipParseError('BAD_NAME_ADDR', 'Something other than parameters follows an address');
  }
  const uri = value.slice(open + 1, close).trim();
  if (uri === '') throw new SipParseError('BAD_NAME_ADDR', 'An address is empty');
  // Unquoted display names should be tokens, but carriers send more than that, which is harmless.
  const displayName = nameEnd > 0 ? unquote(value.slice(0, nameEnd)) : between === '' ? null : between;
  return { displayName, uri, params: parseParameters(after) };
}

export function formatNameAddr(address: NameAddr): string {
  const { displayName } = address;
  const name = displayName === null ? '' : `${isDisplayToken(displayName) ? displayName : quote(displayName)} `;
  return `${name}<${address.uri}>${formatParameters(address.params)}`;
}

/** The `tag` of a From or To value; `null` if it is missing or the value is invalid. */
export function tagOf(value: string | undefined): string | null {
  if (value === undefined) return null;
  try {
    return parseNameAddr(value).params.get('tag') ?? null;
  } catch {
    return null;
  }
}

/** Without brackets, everything after the first `;` belongs to the header, and `?` is forbidden (RFC 3261 §20). */
function parseBareAddress(value: string, nameEnd: number): NameAddr {
  if (nameEnd > 0) throw new SipParseError('BAD_NAME_ADDR', 'A display name stands without an address');
  const semicolon = value.indexOf(';');
  const uri = (semicolon === -1 ? value : value.slice(0, semicolon)).trim();
  if (uri === '' || /[\s",>?]/.test(uri)) throw new SipParseError('BAD_NAME_ADDR', 'An address is not a URI');
  return { displayName: null, uri, params: parseParameters(semicolon === -1 ? '' : value.slice(semicolon)) };
}

function isDisplayToken(displayName: string): boolean {
  return displayName !== '' && displayName.split(' ').every(isToken);
}
