import { header, type SipRequest, type SipResponse } from '../../message/index.ts';
import type { Remote } from '../transport/remote.ts';
import type { Application } from './application.ts';

interface Registration {
  application: Application;
  request: SipRequest;
  source: Remote;
}

/**
 * Registrations over TCP or TLS, by Call-ID. A registrar reaches a client behind NAT only over the connection of its
 * REGISTER (RFC 5626), so the loss of that connection is reported to the application.
 */
export class Registrations {
  readonly #byCallId = new Map<string, Registration>();

  /** Call for each response to a REGISTER. */
  follow(application: Application, request: SipRequest, { response, source }: Answer): void {
    const callId = header(request, 'call-id') ?? '';
    if (response.statusCode < 200 || response.statusCode >= 300 || source === null) return;
    if (source.connectionId === null || isRemoval(request)) this.#byCallId.delete(callId);
    else this.#byCallId.set(callId, { application, request, source });
  }

  /** Call when a connection was closed. */
  unreachable(remote: Remote): void {
    for (const [callId, { application, request, source }] of this.#byCallId) {
      if (source.transport !== remote.transport || source.connectionId !== remote.connectionId) continue;
      this.#byCallId.delete(callId);
      application.deliverOwn({ request, dialogId: null });
    }
  }

  abandon(application: Application): void {
    for (const [callId, registration] of this.#byCallId) {
      if (registration.application === application) this.#byCallId.delete(callId);
    }
  }
}

interface Answer {
  response: SipResponse;
  source: Remote | null;
}

function isRemoval(request: SipRequest): boolean {
  return header(request, 'expires')?.trim() === '0';
}
