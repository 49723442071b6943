import type { Config } from '../../../config.ts';
import { type Finding, fail, ok, reasonOf } from '../../../diagnosis/finding.ts';
import { SipError } from '../../../sip/sip-error.ts';

/** Null if the embedded SIP server is used. */
export async function checkDrachtio(config: Config): Promise<Finding | null> {
  const { drachtioHost: host, drachtioPort: port, drachtioSecret: secret } = config;
  if (host === null || secret === null) return null;
  const check = 'drachtio';
  const { openSrfConnection } = await import('../../../sip/srf-connection.ts');
  try {
    const connection = await openSrfConnection({
      host,
      port,
      secret,
      connectTimeoutMs: 3_000,
      pingIntervalMs: 30_000,
      sendTimeoutMs: 3_000,
      onRequest: () => {},
      onLost: () => {},
      onFault: () => {},
    });
    const { serverVersion, localContacts } = connection;
    connection.close();
    return ok(check, `drachtio-server ${serverVersion} at ${host}:${port}, listening on ${localContacts.join(', ')}`);
  } catch (error) {
    if (error instanceof SipError && error.code === 'server.secret_refused') {
      const advice = 'Set DRACHTIO_SECRET to the secret of its configuration file.';
      return fail(check, `The server at ${host}:${port} refuses the secret.`, advice);
    }
    const advice = 'Start it, or check DRACHTIO_HOST and DRACHTIO_PORT (its admin port, not that of SIP).';
    return fail(check, `No server at ${host}:${port}: ${reasonOf(error)}`, advice);
  }
}
