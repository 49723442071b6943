import { formatParameters, parseParameters } from './lexing.ts';
import { SipParseError } from './parse-error.ts';
import { parseHostPort } from './uri.ts';

/** One Via value (RFC 3261 §20.42). */
export interface Via {
  /** Upper case: `UDP`, `TCP`, ... */
  transport: string;
  host: string;
  port: number | null;
  /** `branch`, `received`, `rport`, ...; an empty `rport` (RFC 3581) is `null`. */
  params: Map<string, string | null>;
  /** The SIP version, if not 2.0. The 505 to such a request still follows its Via. */
  version?: string;
}

/** @throws SipParseError `BAD_VIA`. */
export function parseVia(text: string): Via {
  const match = SENT_PROTOCOL.exec(text);
  const [, version, transport] = match ?? [];
  if (!match || transport === undefined) throw new SipParseError('BAD_VIA', 'A Via does not name SIP and a transport');
  const rest = text.slice(match[0].length);
  const semicolon = rest.indexOf(';');
  try {
    const { host, port } = parseHostPort((semicolon === -1 ? rest : rest.slice(0, semicolon)).trim());
    return {
      transport: transport.toUpperCase(),
      host,
      port,
      params: parseParameters(semicolon === -1 ? '' : rest.slice(semicolon)),
      ...(version === '2.0' ? {} : { version }),
    };
  } catch {
    throw new SipParseError('BAD_VIA', 'A Via has no usable sent-by');
  }
}

export function formatVia(via: Via): string {
  const port = via.port === null ? '' : `:${via.port}`;
  return `SIP/${via.version ?? '2.0'}/${via.transport} ${via.host}${port}${formatParameters(via.params, BARE_VALUE)}`;
}

/**
 * Some peers write a branch that is not a token, such as Base64, and recognise responses only by the same text. Without
 * these characters, a value ends where it did.
 */
const BARE_VALUE = /^[^\s"<>,;\\]+$/;
const SENT_PROTOCOL = /^\s*SIP\s*\/\s*(\d{1,3}\.\d{1,3})\s*\/\s*([A-Za-z0-9-]{1,16})\s+/i;
