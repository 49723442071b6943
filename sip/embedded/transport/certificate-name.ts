import { isIP } from 'node:net';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';

/**
 * Checks that a certificate proves a SIP domain (RFC 5922 §7.2): by a `sip:` URI or DNS name among its alternative
 * names or, without either, by its common name. Unlike in HTTPS, wildcards prove nothing. Addresses need an IP name.
 */
export function certificateError(name: string, certificate: PeerCertificate): Error | undefined {
  if (isIP(name) !== 0) return checkServerIdentity(name, certificate);
  const wanted = name.toLowerCase().replace(/\.$/, '');
  const names = alternativeNames(certificate.subjectaltname ?? '');
  const proven = names.length > 0 ? names : [certificate.subject?.CN].flat().filter((each) => each !== undefined);
  if (proven.some((each) => each.toLowerCase() === wanted)) return undefined;
  const error = new Error(`The certificate is for ${proven.join(', ') || 'no name'}, not for ${wanted}`);
  return Object.assign(error, { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
}

/** Node's format is `DNS:a.example, URI:sip:b.example`. Quoted values contain no plain name. */
function alternativeNames(text: string): string[] {
  return text.split(', ').flatMap((each) => {
    const [, kind, value] = /^(DNS|URI):([^"]*)$/.exec(each) ?? [];
    if (value === undefined) return [];
    if (kind === 'DNS') return [value];
    // A URI with a user proves that user, not the domain (RFC 5922 §7.1).
    const domain = /^sip:([^@;?:]+)$/i.exec(value)?.[1];
    return domain === undefined ? [] : [domain];
  });
}
