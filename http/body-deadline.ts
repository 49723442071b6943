import type { FastifyInstance } from 'fastify';

/**
 * Limits the time in which a body must arrive. Node's single timeout is long enough for uploads. All other routes get a
 * shorter one here, which fails in the same way.
 */
export function limitBodyTime(app: FastifyInstance, { bodyTimeoutMs }: { bodyTimeoutMs: number }): void {
  app.addHook('onRequest', async ({ raw, routeOptions }, reply) => {
    const { headers } = raw;
    const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
    if (!hasBody || routeOptions.config?.receiveBody) return;
    const timer = setTimeout(() => {
      if (raw.complete) return;
      const error = Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      app.server.emit('clientError', error, raw.socket);
    }, bodyTimeoutMs).unref();
    const clear = () => clearTimeout(timer);
    raw.once('end', clear);
    reply.raw.once('close', clear);
  });
}
