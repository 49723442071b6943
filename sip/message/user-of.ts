import { parseNameAddr } from './name-addr.ts';
import { parseUri, uriScheme } from './uri.ts';

/**
 * Returns the user part of a URI or name-addr without telephone parameters (RFC 3966 §3), or the number of a `tel:` URI
 * without visual separators. Returns an empty string if it cannot be parsed.
 */
export function userOf(address: string | undefined): string {
  if (address === undefined) return '';
  try {
    const { uri } = parseNameAddr(address);
    if (uriScheme(uri) === 'tel')
      return uri
        .slice('tel:'.length)
        .replace(/;.*$/s, '')
        .replace(/[-.()]/g, '');
    return decodeURIComponent(parseUri(uri).user ?? '').replace(/;.*$/s, '');
  } catch {
    return '';
  }
}
