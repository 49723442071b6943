import { Type } from 'typebox';
import type { HttpApp } from '../context.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import { STT_SOCKET_PATH } from '../websocket/stt-sockets.ts';

/** What the address of the socket says to whoever does not upgrade. */
export function sttSocketRoute(app: HttpApp): void {
  app.get(
    STT_SOCKET_PATH,
    {
      config: { access: 'public', unlimited: true },
      schema: {
        tags: ['speech-to-text'],
        operationId: 'connectLiveTranscription',
        summary: 'Live transcription over a WebSocket',
        description: [
          'Upgrade to a WebSocket (RFC 6455), with credentials in the query: `apiKey`, or `token` and `workspace_id`.',
          'A key that is limited needs `stt:write`; viewers may not. Messages are in `docs/stt-websocket.md`. Without an',
          'upgrade the answer is `ok`, whoever asks.',
        ].join('\n'),
        security: [],
        response: {
          200: responseOf({
            description: 'Nobody asked for an upgrade.',
            content: { 'text/plain': { schema: Type.String({ examples: ['ok'] }) } },
          }),
          ...REFUSALS,
        },
      },
    },
    async (_request, reply) => reply.type('text/plain; charset=utf-8').send('ok'),
  );
}
