import { parseNameAddr } from './name-addr.ts';
import { parseUri, uriScheme } from './uri.ts';

/** The user part of the URI in a name-addr, as `userOfUri` returns it. An empty string if it cannot be parsed. */
export function userOf(address: string | undefined): string {
  if (address === undefined) return '';
  try {
    return userOfUri(parseNameAddr(address).uri);
  } catch {
    return '';
  }
}

/**
 * Returns the user part of a URI without telephone parameters (RFC 3966 §3), or the number of a `tel:` URI without
 * visual separators. Returns an empty string if it cannot be parsed.
 */
export function userOfUri(uri: string): string {
  try {
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
