import type { PeerCertificate } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { certificateError } from '../../../sip/embedded/transport/certificate-name.ts';

function certificate(subjectaltname: string, commonName = 'other.example'): PeerCertificate {
  return { subjectaltname, subject: { CN: commonName } } as PeerCertificate;
}

describe('certificateError (RFC 5922 §7)', () => {
  it.each([
    ['a DNS name', 'DNS:www.example, DNS:Carrier.Example'],
    ['a SIP URI', 'URI:sip:carrier.example'],
    ['a SIP URI beside other URIs', 'URI:https://x.example, URI:SIP:carrier.example'],
  ])('accepts %s', (_what, names) => {
    expect(certificateError('carrier.example', certificate(names))).toBeUndefined();
  });

  it('accepts the common name only if the certificate has no alternative names', () => {
    expect(certificateError('carrier.example', certificate('', 'carrier.example'))).toBeUndefined();
    expect(certificateError('carrier.example', certificate('DNS:a.example', 'carrier.example'))).toBeDefined();
  });

  it.each([
    ['another name', 'DNS:evil.example'],
    ['a name that ends alike', 'DNS:evilcarrier.example'],
    ['a wildcard', 'DNS:*.example'],
    ['a URI with a user', 'URI:sip:bob@carrier.example'],
    ['a URI of another scheme', 'URI:https:carrier.example'],
    ['a name within quotes', 'DNS:"evil.example, DNS:carrier.example"'],
    ['an address', 'IP Address:192.0.2.1'],
  ])('rejects %s', (_what, names) => {
    expect(certificateError('carrier.example', certificate(names))).toMatchObject({
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
  });

  it('matches an IP address exactly', () => {
    expect(certificateError('192.0.2.1', certificate('IP Address:192.0.2.1'))).toBeUndefined();
    expect(certificateError('192.0.2.1', certificate('IP Address:192.0.2.2'))).toBeDefined();
    expect(certificateError('192.0.2.1', certificate('DNS:192.0.2.1'))).toBeDefined();
  });
});
