import { X509Certificate } from 'node:crypto';
import type { Config } from '../config.ts';
import { readTlsFiles } from '../sip/tls-files.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';

const WARN_BEFORE_MS = 14 * 86_400_000;

/**
 * Checks that the files of SIP over TLS are valid, and for how long. Null with a drachtio-server, which has its own.
 */
export async function checkSipTls(config: Config, nowMs = Date.now()): Promise<Finding | null> {
  if (config.drachtioHost !== null) return null;
  const check = 'SIP over TLS';
  try {
    const { certificate, ca, demandsClientCertificate } = await readTlsFiles(config);
    const authorities = ca === null ? 'the authorities of the system and of Node' : 'the authorities of SIP_TLS_CA';
    if (certificate === null) return ok(check, `to carriers only, which ${authorities} must vouch for`);
    const validUntil = new Date(new X509Certificate(certificate.cert).validTo);
    const until = validUntil.toISOString().slice(0, 10);
    const advice = 'Replace the files of SIP_TLS_CERT and SIP_TLS_KEY, and restart.';
    if (validUntil.getTime() <= nowMs) return fail(check, `The certificate expired on ${until}.`, advice);
    if (validUntil.getTime() - nowMs < WARN_BEFORE_MS)
      return warn(check, `The certificate expires on ${until}.`, advice);
    const clients = demandsClientCertificate ? 'peers with a certificate' : 'any peer';
    return ok(check, `certificate until ${until}; ${clients} may connect to port ${config.sipTlsPort}`);
  } catch (error) {
    return fail(check, reasonOf(error), 'The server does not start until the SIP_TLS_ settings are right.');
  }
}
