import type { FastifyInstance, FastifyReply } from 'fastify';

/** How long requests that are under way may take once the server closes. */
const FINISH_MS = 2_000;

/** Counts requests from their arrival until their response is out; the returned function waits for them, but not long. */
export function trackRunningRequests(app: Pick<FastifyInstance, 'addHook'>): () => Promise<void> {
  const running = new Set<FastifyReply['raw']>();
  let whenIdle: () => void = () => undefined;

  app.addHook('onRequest', async (_request, reply) => {
    running.add(reply.raw);
    reply.raw.once('close', () => {
      running.delete(reply.raw);
      if (running.size === 0) whenIdle();
    });
  });

  return async () => {
    if (running.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, FINISH_MS);
      whenIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  };
}
