import { randomUUID } from 'node:crypto';
import { type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { TandemError } from '../machines/errors.ts';
import type { Limits } from '../storage/limits/limits.ts';
import { rateLimitHeaders } from './rate-limits.ts';
import { errorBody } from './refusals.ts';
import { securityHeaders } from './security-headers.ts';

export interface BrokenRequestOptions {
  limits: Limits;
  isHttps: boolean;
  /** Whether a response was partly sent on the connection, so that no other may follow. */
  isAnswering: (socket: Duplex) => boolean;
}

/**
 * Responds to requests that never reach Fastify, with the usual envelope and headers: bytes that are not HTTP,
 * oversized headers, timeouts, and CONNECT. Writes to the raw socket and closes it.
 */
export function refuseBrokenRequests({ limits, isHttps, isAnswering }: BrokenRequestOptions) {
  async function refuse(socket: Duplex, { statusLine, refusal, more = {} }: RawRefusal): Promise<void> {
    const { remoteAddress } = socket as { remoteAddress?: string };
    const state = await limits.consumeAddress(remoteAddress ?? 'unknown');
    const requestId = randomUUID();
    const body = JSON.stringify(errorBody(refusal, requestId));
    const headers = {
      'x-request-id': requestId,
      ...securityHeaders({ isHttps, path: '' }),
      ...rateLimitHeaders(state),
      ...more,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    socket.end(`HTTP/1.1 ${statusLine}\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
  }

  return {
    onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
      if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) socket.destroy(error);
      else void refuse(socket, refusalOf(error.code));
    },
    /** Rejects a WebSocket handshake that violates RFC 6455 §4.2.1. */
    refuseHandshake(socket: Duplex, message: string): void {
      void refuse(socket, {
        statusLine: '400 Bad Request',
        refusal: new TandemError('VALIDATION_FAILED', `The WebSocket handshake is invalid: ${message}.`),
        more: { 'sec-websocket-version': '13' },
      });
    },
    /** Rejects a valid WebSocket handshake with an error. */
    refuseUpgrade(socket: Duplex, refusal: TandemError): void {
      void refuse(socket, { statusLine: `${refusal.status} ${STATUS_CODES[refusal.status]}`, refusal });
    },
    /** Rejects CONNECT, because Node would close the connection without a response. */
    refuseTunnels(server: Server): void {
      server.on('connect', (_request, socket) => {
        socket.on('error', () => socket.destroy());
        void refuse(socket, NO_TUNNELS);
      });
    },
  };
}

interface RawRefusal {
  statusLine: string;
  refusal: TandemError;
  more?: Record<string, string>;
}

const NO_TUNNELS: RawRefusal = {
  statusLine: '405 Method Not Allowed',
  refusal: new TandemError('METHOD_NOT_ALLOWED', 'This server is not a proxy. Connect to the target directly.'),
  more: { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE' },
};

function refusalOf(code: string | undefined): RawRefusal {
  if (code === 'HPE_HEADER_OVERFLOW') {
    const message = 'The URL and headers together must be at most 16 KiB.';
    return {
      statusLine: '431 Request Header Fields Too Large',
      refusal: new TandemError('VALIDATION_FAILED', message),
    };
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const refusal = new TandemError('VALIDATION_FAILED', 'The request did not arrive in time. Send it again.');
    return { statusLine: '408 Request Timeout', refusal };
  }
  const message = 'The request is not valid HTTP/1.1. For TLS, use http:// here or a TLS proxy in front.';
  return { statusLine: '400 Bad Request', refusal: new TandemError('VALIDATION_FAILED', message) };
}
