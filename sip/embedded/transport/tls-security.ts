import { isIP } from 'node:net';
import tls from 'node:tls';
import { certificateError } from './certificate-name.ts';

/** PEM texts, so that they can be passed to a thread. */
export interface TlsSettings {
  /** Port of the listener, which is opened only with a certificate; 0 for any. */
  port: number;
  /** Our certificate, for the listener and for peers that request one. */
  certificate: { cert: string; key: string } | null;
  /** Trusted authorities; null: those of the system and of Node. */
  ca: string | null;
  /** The listener accepts only peers with a certificate of these authorities. */
  demandsClientCertificate: boolean;
}

/** TLS parameters of connections (RFC 3261 §26.3.1, RFC 5922). */
export interface TlsSecurity {
  /** Null: no listener. */
  readonly server: tls.TlsOptions | null;
  /** The socket reports a certificate that does not prove `name` as an error. */
  connect(host: string, port: number, name: string): tls.TLSSocket;
}

/** @throws the error of OpenSSL if a certificate or key is invalid, or they do not match. */
export function createTlsSecurity(settings: TlsSettings): TlsSecurity {
  const contextOptions = (): tls.SecureContextOptions => ({
    ca: settings.ca ?? [...new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system')])],
    minVersion: 'TLSv1.2',
    ...settings.certificate,
  });
  // Loading the authorities takes 20 ms. All connections share them; without TLS trunks they are not loaded.
  let secureContext: tls.SecureContext | null = null;
  const sharedContext = (): tls.SecureContext => {
    secureContext ??= tls.createSecureContext(contextOptions());
    return secureContext;
  };
  if (settings.certificate !== null || settings.ca !== null) sharedContext();
  return {
    server: settings.certificate && {
      ...contextOptions(),
      requestCert: settings.demandsClientCertificate,
      rejectUnauthorized: settings.demandsClientCertificate,
      handshakeTimeout: HANDSHAKE_WITHIN_MS,
    },
    connect(host, port, name) {
      const socket = tls.connect({
        host,
        port,
        secureContext: sharedContext(),
        ...(isIP(name) === 0 ? { servername: name } : {}),
        checkServerIdentity: (_host, certificate) => certificateError(name, certificate),
      });
      socket.setNoDelay(true);
      return socket;
    },
  };
}

const HANDSHAKE_WITHIN_MS = 10_000;
