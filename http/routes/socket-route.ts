import { Type } from 'typebox';
import type { HttpApp } from '../context.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';

interface DocumentedSocket {
  tags: string[];
  operationId: string;
  summary: string;
  description: string;
}

/** Documents a WebSocket, and rejects requests without an upgrade. */
export function socketRoute(app: HttpApp, path: string, documented: DocumentedSocket): void {
  app.get(
    path,
    {
      config: { access: 'public', unlimited: true, anyQuery: true },
      schema: {
        ...documented,
        security: [],
        response: {
          200: responseOf({
            description: 'The request was not an upgrade.',
            content: { 'text/plain': { schema: Type.String({ examples: ['ok'] }) } },
          }),
          ...REFUSALS,
        },
      },
    },
    async (_request, reply) => reply.type('text/plain; charset=utf-8').send('ok'),
  );
}
