import { parseNameAddr, parseUri, uriScheme, userOf } from './message/index.ts';
import type { Referral } from './sip-gateway.ts';
import type { SrfReceivedRequest, SrfRequestOptions } from './srf-types.ts';

/** Status of the response to a REFER that cannot be a transfer to a number (RFC 3515 §2.4). */
export type ReferRefusal = 400 | 501;

interface ReferTarget {
  user: string;
  /** The Replaces header of the INVITE to the target (RFC 3891), null for a blind transfer. */
  replaces: string | null;
}

/**
 * Parses Refer-To: the target of the transfer, and the dialog that it replaces there (RFC 5589 §7). Rejects with 400
 * unless there is exactly one address (RFC 3515 §2.4.1), and with 501 any other method than INVITE or any other header.
 */
export function readReferTo(request: Pick<SrfReceivedRequest, 'get'>): ReferTarget | { refusal: ReferRefusal } {
  const referTo = request.get('Refer-To') ?? request.get('r');
  if (referTo === undefined) return { refusal: 400 };
  const user = userOf(referTo);
  if (user === '') return { refusal: 400 };
  try {
    const { uri } = parseNameAddr(referTo);
    if (uriScheme(uri) === 'tel') return { user, replaces: null };
    const { headers, params } = parseUri(uri);
    const method = params.get('method') ?? 'INVITE';
    if (method.toUpperCase() !== 'INVITE') return { refusal: 501 };
    if (headers === null) return { user, replaces: null };
    const [first = '', ...others] = headers.split('&').filter((each) => !/^require=replaces$/i.test(each));
    if (others.length > 0 || !/^replaces=/i.test(first)) return { refusal: 501 };
    const replaces = decodeURIComponent(first.slice('replaces='.length));
    return REPLACES.test(replaces) ? { user, replaces } : { refusal: 400 };
  } catch {
    return { refusal: 400 };
  }
}

/** `call-id;to-tag=a;from-tag=b`, with further parameters such as `early-only` (RFC 3891 §6.1). */
const REPLACES =
  /^[\x21-\x2b\x2d-\x3a\x3c-\x7e]+(?=.*;to-tag=)(?=.*;from-tag=)(?:;[\w.!%*+`'~-]+(?:=[\x21-\x2b\x2d-\x3a\x3c-\x7e]+)?)+$/i;

export interface ReceivedReferralOptions extends ReferTarget {
  request: Pick<SrfReceivedRequest, 'get'>;
  /** Whether it is a second REFER in the dialog, whose NOTIFYs carry its CSeq as id (RFC 3515 §2.4.6). */
  isRepeated: boolean;
  notify: (options: Pick<SrfRequestOptions, 'method' | 'headers' | 'body'>) => void;
}

/** An accepted REFER, with the NOTIFYs that report its progress to the peer. */
export class ReceivedReferral implements Referral {
  readonly user: string;
  readonly replaces: string | null;
  readonly #event: string;
  readonly #notify: ReceivedReferralOptions['notify'];
  #hasBegun = false;
  #reported: number | null = null;

  constructor({ user, replaces, request, isRepeated, notify }: ReceivedReferralOptions) {
    this.user = user;
    this.replaces = replaces;
    const sequence = Number.parseInt(request.get('CSeq') ?? '', 10);
    this.#event = isRepeated && !Number.isNaN(sequence) ? `refer;id=${sequence}` : 'refer';
    this.#notify = notify;
  }

  get isReported(): boolean {
    return this.#reported !== null;
  }

  /** Sends the first NOTIFY, which must follow the 202 immediately (RFC 3515 §2.4.4). */
  begin(): void {
    this.#hasBegun = true;
    if (this.#reported === null) this.#send(100, `active;expires=${LASTS_S}`);
    else this.#end(this.#reported);
  }

  report(status: number): void {
    if (this.#reported !== null) return;
    this.#reported = status;
    if (this.#hasBegun) this.#end(status);
  }

  #end(status: number): void {
    this.#send(status, 'terminated;reason=noresource');
  }

  #send(status: number, state: string): void {
    const headers = {
      Event: this.#event,
      'Subscription-State': state,
      'Content-Type': 'message/sipfrag;version=2.0',
    };
    this.#notify({ method: 'NOTIFY', headers, body: `SIP/2.0 ${status} ${PHRASES[status] ?? 'Failed'}\r\n` });
  }
}

/** Longer than any phone rings. */
const LASTS_S = 300;

const PHRASES: Readonly<Record<number, string>> = {
  100: 'Trying',
  200: 'OK',
  403: 'Forbidden',
  404: 'Not Found',
  408: 'Request Timeout',
  480: 'Temporarily Unavailable',
  481: 'Call Does Not Exist',
  484: 'Address Incomplete',
  486: 'Busy Here',
  487: 'Request Terminated',
  491: 'Request Pending',
  500: 'Server Internal Error',
  503: 'Service Unavailable',
  603: 'Decline',
};
