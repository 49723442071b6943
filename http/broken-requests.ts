import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { TandemError } from '../machines/errors.ts';
import type { Limits } from '../storage/limits/limits.ts';
import { rateLimitHeaders } from './rate-limits.ts';
import { errorBody } from './refusals.ts';
import { securityHeaders } from './security-headers.ts';

export interface BrokenRequestOptions {
  limits: Limits;
  /** Whether clients come by way of https. */
  isHttps: boolean;
  /** Whether part of a response has gone out on the connection, so that nothing else may. */
  isAnswering: (socket: Duplex) => boolean;
}

/**
 * Answers what never becomes a request of the framework, with the envelope and the headers of every other response:
 * bytes that are not HTTP, headers beyond the limit, requests that do not arrive in time, and CONNECT. There is only a
 * socket, which is closed afterwards.
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
    /** A request for a WebSocket that is not as RFC 6455 §4.2.1 has it. */
    refuseHandshake(socket: Duplex, message: string): void {
      void refuse(socket, {
        statusLine: '400 Bad Request',
        refusal: new TandemError('VALIDATION_FAILED', `This is no WebSocket handshake: ${message}.`),
        more: { 'sec-websocket-version': '13' },
      });
    },
    /** Node would close the connection without a word. */
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
  refusal: new TandemError('METHOD_NOT_ALLOWED', 'This server is not a proxy. Connect to the other one directly.'),
  more: { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE' },
};

function refusalOf(code: string | undefined): RawRefusal {
  if (code === 'HPE_HEADER_OVERFLOW') {
    const message = 'URL and headers together are larger than 16 KiB. Send less.';
    return {
      statusLine: '431 Request Header Fields Too Large',
      refusal: new TandemError('VALIDATION_FAILED', message),
    };
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const refusal = new TandemError('VALIDATION_FAILED', 'The request did not arrive in time. Send it again.');
    return { statusLine: '408 Request Timeout', refusal };
  }
  const message = 'This is not a well-formed HTTP/1.1 request. If it was meant to be TLS, use http:// or a TLS proxy.';
  return { statusLine: '400 Bad Request', refusal: new TandemError('VALIDATION_FAILED', message) };
}
