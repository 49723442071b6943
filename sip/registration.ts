import { randomBytes, randomUUID } from 'node:crypto';
import { challengerOf, isChallenge, LegCredentials } from './leg-credentials.ts';
import { printable } from './leg-outcome.ts';
import { parseNameAddr, parseUri } from './message/index.ts';
import type { RegisterOutcome, RegisterRequest, TrunkEndpoint, TrunkRegistration } from './sip-gateway.ts';
import type { SrfConnection } from './srf-connection.ts';
import type { SrfResponse, SrfSentRequest } from './srf-types.ts';
import { nextHopOf, readTrunkUri, trunkUri } from './trunk.ts';
import { LONGEST_DELTA_S, SILENT, secondsOf, signOfResponse, UNREACHABLE } from './trunk-sign.ts';

export interface RegistrationParts {
  trunk: TrunkEndpoint;
  /** Null without a SIP server. */
  connection: () => Pick<SrfConnection, 'request'> | null;
  /** Timeout of a REGISTER, in case the SIP server reports nothing. */
  timeoutMs: number;
  /** Called when the connection of the last successful REGISTER was closed. */
  onLost: () => void;
  /** Contains the registration under its Call-ID while the carrier has it. */
  registered: Map<string, Registration>;
}

/** REGISTERs in one exchange: two challenges, a stale nonce each, and a 423. */
const MOST_REQUESTS = 6;

/** Registers the account of a trunk at its registrar, the host of its URI. */
export class Registration implements TrunkRegistration {
  readonly #parts: RegistrationParts;
  readonly #credentials: LegCredentials;
  readonly #callId = randomUUID();
  readonly #fromTag = randomBytes(8).toString('hex');
  #sequence = 0;
  #isRegistering = false;

  constructor(parts: RegistrationParts) {
    this.#parts = parts;
    this.#credentials = new LegCredentials(parts.trunk, 'REGISTER');
  }

  async register(request: RegisterRequest): Promise<RegisterOutcome> {
    this.#isRegistering = true;
    if (request.expiresS === 0) this.#parts.registered.delete(this.#callId);
    try {
      return await this.#register(request);
    } finally {
      this.#isRegistering = false;
    }
  }

  /** Handles the loss of the connection of the last REGISTER, unless a further one is in progress. */
  lost(): void {
    if (!this.#isRegistering) this.#parts.onLost();
  }

  /** Call at once for the 2xx: the loss of its connection may follow before `register` continues. */
  #accepted(): void {
    this.#isRegistering = false;
    this.#parts.registered.set(this.#callId, this);
  }

  async #register({ expiresS, nextHop: hop = null, signal }: RegisterRequest): Promise<RegisterOutcome> {
    const trunk = { ...this.#parts.trunk, nextHop: hop, transport: hop?.transport ?? this.#parts.trunk.transport };
    let expires = expiresS;
    let nextHop = nextHopOf(trunk);
    let authorization: Record<string, string> = {};
    try {
      authorization = this.#credentials.again(trunkUri(trunk));
      for (let sent = 1; ; sent += 1) {
        const answer = await this.#send({ expires, nextHop, authorization, signal });
        if (answer === null) return SILENT;
        const { request, response } = answer;
        const sign = signOfResponse(response);
        if (sign.type !== 'answered') return sign;
        if (response.status < 300) return { type: 'registered', expiresS: grantedS(request, response, expires) };
        const challenger = challengerOf(response);
        const headers = isChallenge(response.status) ? this.#credentials.answer(response, request.uri) : null;
        const leastS = response.status === 423 ? secondsOf(response.get('Min-Expires')) : null;
        if (headers !== null) {
          authorization = headers;
          if (challenger !== null) nextHop = { proxy: challenger };
        } else if (leastS !== null && leastS > expires && leastS < LONGEST_DELTA_S && expires > 0) {
          expires = leastS;
          authorization = this.#credentials.again(request.uri);
        } else return refusal(response);
        if (sent === MOST_REQUESTS) return refusal(response);
      }
    } catch {
      // Not an address, or a user name that is invalid in a URI.
      return UNREACHABLE;
    }
  }

  /** Null without a response in time. */
  async #send(options: {
    expires: number;
    nextHop: { proxy?: string };
    authorization: Record<string, string>;
    signal: AbortSignal;
  }): Promise<{ request: SrfSentRequest; response: SrfResponse } | null> {
    const { expires, nextHop, authorization, signal } = options;
    const { trunk, connection, timeoutMs } = this.#parts;
    const current = connection();
    if (current === null || signal.aborted) return null;
    const uri = trunkUri(trunk);
    const user = encodeURIComponent(trunk.username ?? '');
    const account = `<sip:${user}@${readTrunkUri(trunk.sipUri).host}>`;
    this.#sequence += 1;
    const headers = {
      From: `${account};tag=${this.#fromTag}`,
      To: account,
      'Call-ID': this.#callId,
      CSeq: `${this.#sequence} REGISTER`,
      // The server replaces this by its own address.
      Contact: `<sip:${user}@localhost>`,
      Expires: String(expires),
      'User-Agent': 'Tandem',
      ...authorization,
    };
    const { promise, resolve } = Promise.withResolvers<{ request: SrfSentRequest; response: SrfResponse } | null>();
    const giveUp = () => resolve(null);
    const timer = setTimeout(giveUp, timeoutMs);
    signal.addEventListener('abort', giveUp, { once: true });
    current.request(uri, { ...nextHop, method: 'REGISTER', headers }, (outcome) => {
      if (outcome.kind !== 'sent') {
        giveUp();
        return;
      }
      const { request } = outcome;
      request.on('response', (response: SrfResponse) => {
        if (response.status < 200) return;
        if (response.status < 300 && expires > 0) this.#accepted();
        resolve({ request, response });
      });
    });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
    }
  }
}

function refusal(response: SrfResponse): RegisterOutcome {
  return {
    type: 'refused',
    sipStatus: response.status,
    reason: printable(response.reason),
    retryAfterS: secondsOf(response.get('Retry-After')),
  };
}

/** Expiry of our Contact if the registrar lists it, else of the response (RFC 3261 §10.2.4). */
function grantedS(request: SrfSentRequest, response: SrfResponse, requestedS: number): number {
  const own = addressOf(request.get('Contact') ?? '');
  for (const contact of contactsOf(response.get('Contact') ?? '')) {
    const seconds = addressOf(contact) === own ? secondsOf(/;\s*expires\s*=\s*"?(\d+)/i.exec(contact)?.[1]) : null;
    if (seconds !== null) return seconds;
  }
  return secondsOf(response.get('Expires')) ?? requestedS;
}

/** Ignores commas in brackets or quotes. */
function contactsOf(header: string): string[] {
  return header.slice(0, 8192).match(/(?:"(?:[^"\\]|\\.)*"|<[^>]*>|[^,"<])+/g) ?? [];
}

function addressOf(contact: string): string | null {
  try {
    const { user, host, port } = parseUri(parseNameAddr(contact.trim()).uri);
    return `${user}@${host.toLowerCase()}:${port ?? 5060}`;
  } catch {
    return null;
  }
}
