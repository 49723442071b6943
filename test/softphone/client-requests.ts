import { randomBytes } from 'node:crypto';
import {
  appendHeader,
  createResponse,
  header,
  parseVia,
  type SipRequest,
  type SipResponse,
  sipHeader,
} from '../../sip/message/index.ts';
import type { SipEndpoint, SipPeer } from './sip-endpoint.ts';

export const T1_MS = 500;
export const T2_MS = 4000;

interface Pending {
  resolve: (response: SipResponse) => void;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Client transactions (RFC 3261 section 17.1): repeats requests over UDP until the final response, or 408 after 32 s.
 */
export class ClientRequests {
  readonly #endpoint: SipEndpoint;
  readonly #pending = new Map<string, Pending>();

  constructor(endpoint: SipEndpoint) {
    this.#endpoint = endpoint;
  }

  send(request: SipRequest, to: SipPeer): Promise<SipResponse> {
    const branch = this.addVia(request, to);
    const { promise, resolve } = Promise.withResolvers<SipResponse>();
    const pending: Pending = { resolve, timer: undefined };
    this.#pending.set(branch, pending);
    this.#transmit(request, to, pending, { intervalMs: T1_MS, elapsedMs: 0, branch });
    return promise;
  }

  /** Adds a Via and returns its branch. Used directly for ACK, which has no response. */
  addVia(request: SipRequest, to: SipPeer): string {
    const branch = `z9hG4bK${randomBytes(8).toString('hex')}`;
    const via = `SIP/2.0/${to.transport.toUpperCase()} ${this.#endpoint.uriHost}:${this.#endpoint.port};branch=${branch};rport`;
    request.headers.unshift(sipHeader('Via', via));
    return branch;
  }

  take(response: SipResponse): void {
    const via = header(response, 'Via');
    const branch = via === undefined ? null : (parseVia(via).params.get('branch') ?? null);
    const pending = branch === null ? undefined : this.#pending.get(branch);
    if (branch === null || pending === undefined || response.statusCode < 200) return;
    clearTimeout(pending.timer);
    this.#pending.delete(branch);
    pending.resolve(response);
  }

  close(): void {
    for (const { timer, resolve } of this.#pending.values()) {
      clearTimeout(timer);
      resolve(createResponse({ statusCode: 503, reasonPhrase: 'Closed' }));
    }
    this.#pending.clear();
  }

  #transmit(
    request: SipRequest,
    to: SipPeer,
    pending: Pending,
    pace: { intervalMs: number; elapsedMs: number; branch: string },
  ): void {
    if (pace.elapsedMs >= 64 * T1_MS) {
      this.#pending.delete(pace.branch);
      const response = createResponse({ statusCode: 408, reasonPhrase: 'Request Timeout' });
      appendHeader(response, 'CSeq', header(request, 'CSeq') ?? '');
      pending.resolve(response);
      return;
    }
    if (to.transport === 'udp' || pace.elapsedMs === 0) this.#endpoint.send(request, to);
    pending.timer = setTimeout(() => {
      this.#transmit(request, to, pending, {
        ...pace,
        intervalMs: Math.min(pace.intervalMs * 2, T2_MS),
        elapsedMs: pace.elapsedMs + pace.intervalMs,
      });
    }, pace.intervalMs);
  }
}
