import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type VerifyResult, verifyCallbackSignature } from '../../actors/callbacks/signature.ts';

export interface ReceivedCallback {
  signature: string;
  verified: VerifyResult;
  headers: Record<string, string>;
  rawBody: string;
  body: { event: string; event_id: string; data: { call: { call_id: string } } };
}

/** Starts an integrator's server: it receives callbacks, verifies their signatures and answers 204. */
export async function startCallbackReceiver(secret: string) {
  const received: ReceivedCallback[] = [];
  const waiting: { callId: string; resolve: (callback: ReceivedCallback) => void }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const rawBody = Buffer.concat(chunks);
      const signature = String(request.headers['x-qcall-signature'] ?? '');
      const verified = verifyCallbackSignature({ secret, rawBody, header: signature });
      response.writeHead(verified.ok ? 204 : 401).end();
      const headers = request.headers as Record<string, string>;
      const callback = {
        signature,
        verified,
        headers,
        rawBody: rawBody.toString(),
        body: JSON.parse(rawBody.toString()) as ReceivedCallback['body'],
      };
      received.push(callback);
      for (const { callId, resolve } of waiting) if (callId === callback.body.data.call.call_id) resolve(callback);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/call-finished`,
    received,
    /** Resolves with a call's callback, also if it already arrived. */
    callbackOf(callId: string): Promise<ReceivedCallback> {
      const already = received.find(({ body }) => body.data.call.call_id === callId);
      return already ? Promise.resolve(already) : new Promise((resolve) => waiting.push({ callId, resolve }));
    },
    stop: () => new Promise<void>((resolve) => void server.close(() => resolve()).closeAllConnections()),
  };
}
