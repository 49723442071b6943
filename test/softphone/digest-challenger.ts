import { createHash, randomBytes } from 'node:crypto';
import { header, headers, type SipRequest, tagOf } from '../../sip/message/index.ts';

export interface CarrierAuth {
  username: string;
  password: string;
  realm: string;
  challenge: 401 | 407;
  /** Default: MD5. Tandem does not support SHA-512-256. */
  algorithm?: 'MD5' | 'SHA-256' | 'SHA-512-256';
  /** Uses per nonce before it becomes stale. Default: unlimited. */
  nonceUses?: number;
  /** Also challenges BYE and re-INVITE. Default: false. */
  inDialog?: boolean;
}

/** Strict server side of digest authentication (RFC 3261 section 22, RFC 7616). */
export class DigestChallenger {
  readonly #auth: CarrierAuth;
  /** Highest nonce count by nonce (RFC 7616 section 3.4). */
  readonly #nonces = new Map<string, number>();
  readonly #stale = new Set<string>();

  constructor(auth: CarrierAuth) {
    this.#auth = auth;
  }

  /** ACK and CANCEL cannot be challenged (RFC 3261 section 22.1). */
  isDue(request: SipRequest): boolean {
    if (request.method === 'ACK' || request.method === 'CANCEL' || request.method === 'OPTIONS') return false;
    return tagOf(header(request, 'To')) === null || this.#auth.inDialog === true;
  }

  refusalOf(request: SipRequest): { status: number; headers: [string, string][] } | null {
    const { challenge, realm, algorithm = 'MD5', nonceUses = Number.POSITIVE_INFINITY } = this.#auth;
    const all = headers(request, challenge === 401 ? 'Authorization' : 'Proxy-Authorization');
    const credentials = all.find((each) => parametersOf(each).get('realm') === realm) ?? all[0];
    if (credentials !== undefined && this.#isGood(request, credentials)) {
      const given = parametersOf(credentials);
      const used = Number.parseInt(given.get('nc') ?? '', 16);
      if (used > (this.#nonces.get(given.get('nonce') ?? '') ?? 0) && used <= nonceUses) {
        this.#nonces.set(given.get('nonce') ?? '', used);
        return null;
      }
      this.#stale.add(given.get('nonce') ?? '');
    }
    const isStale = credentials !== undefined && this.#stale.has(parametersOf(credentials).get('nonce') ?? '');
    const nonce = randomBytes(12).toString('hex');
    this.#nonces.set(nonce, 0);
    const name = challenge === 401 ? 'WWW-Authenticate' : 'Proxy-Authenticate';
    const value = `Digest realm="${realm}", nonce="${nonce}", opaque="o-1", algorithm=${algorithm}, qop="auth"${isStale ? ', stale=true' : ''}`;
    return { status: challenge, headers: [[name, value]] };
  }

  #isGood(request: SipRequest, credentials: string): boolean {
    const { username, password, realm, algorithm = 'MD5' } = this.#auth;
    const given = parametersOf(credentials);
    const nonce = given.get('nonce') ?? '';
    if (!this.#nonces.has(nonce) || given.get('uri') !== request.uri) return false;
    if (given.get('username') !== username || given.get('realm') !== realm || given.get('opaque') !== 'o-1')
      return false;
    const hash = (text: string) =>
      createHash(algorithm === 'MD5' ? 'md5' : 'sha256')
        .update(text)
        .digest('hex');
    const secret = hash(`${username}:${realm}:${password}`);
    const what = hash(`${request.method}:${request.uri}`);
    const expected = hash([secret, nonce, given.get('nc'), given.get('cnonce'), 'auth', what].join(':'));
    return given.get('qop') === 'auth' && given.get('response') === expected;
  }
}

function parametersOf(credentials: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, name = '', quoted, token = ''] of credentials.matchAll(/(\w+)=(?:"([^"]*)"|([^\s,]+))/g)) {
    found.set(name, quoted ?? token);
  }
  return found;
}
