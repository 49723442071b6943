import Srf from 'drachtio-srf';

/**
 * With `TANDEM_TEST_DRACHTIO=secret@host:port`, test/sip/ and test/calls/ use this drachtio server instead of embedded
 * ones. Requires `--maxWorkers=1`, since the server distributes requests among all connected applications.
 */
export interface DrachtioEndpoint {
  secret: string;
  host: string;
  port: number;
}

export const DRACHTIO = readEndpoint(process.env.TANDEM_TEST_DRACHTIO);

/** Reasons why a test cannot run with a drachtio-server. */
const DIFFERENCES = {
  addresses: 'its addresses are its own options: SIP_HOST, SIP_PORT and SIP_TRANSPORTS do nothing',
  certificates: 'TLS is set up in its own configuration file',
  connections: 'it does not report that it lost the connection of a registration',
  deaths: 'the test ends the server',
  ids: 'both legs of a call that is routed back have one dialog id',
  one: 'two applications are connected at once, and it gives new calls to either',
  timers: 'the test needs other SIP timers than those of RFC 3261',
  trace: 'it shows the messages that it exchanges with applications, not those it handles itself',
} as const;

/** True if the tests run with a drachtio-server, which differs in this respect. */
export function differs(_in: keyof typeof DIFFERENCES): boolean {
  return DRACHTIO !== null;
}

export function drachtioSettings(): Record<string, string> {
  if (DRACHTIO === null) return {};
  const { host, port, secret } = DRACHTIO;
  return { DRACHTIO_HOST: host, DRACHTIO_PORT: String(port), DRACHTIO_SECRET: secret };
}

export async function sipAddressOf({ host, port, secret }: DrachtioEndpoint): Promise<{ host: string; port: number }> {
  const srf = new Srf();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  srf.on('error', reject);
  srf.on('connect', (error: unknown, contacts: string) => (error ? reject(error) : resolve(contacts)));
  void srf.connect({ host, port, secret });
  try {
    const contacts = await promise;
    const udp = /(?:^|,)udp\/([^,]+):(\d+)/.exec(contacts);
    if (udp === null) throw new Error(`the drachtio endpoint has no UDP address: ${contacts}`);
    return { host: udp[1]!, port: Number(udp[2]) };
  } finally {
    srf.disconnect();
  }
}

function readEndpoint(text: string | undefined): DrachtioEndpoint | null {
  if (text === undefined || text === '') return null;
  const [, secret, host, port] = /^([^@]+)@([^:@]+):(\d+)$/.exec(text) ?? [];
  if (secret === undefined || host === undefined) throw new Error('TANDEM_TEST_DRACHTIO must be secret@host:port');
  return { secret, host, port: Number(port) };
}
