import { Type } from 'typebox';
import type { HttpApp } from '../context.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import { STT_SOCKET_PATH } from '../websocket/stt-sockets.ts';

/** Answers requests to the WebSocket address that do not upgrade. */
export function sttSocketRoute(app: HttpApp): void {
  app.get(
    STT_SOCKET_PATH,
    {
      config: { access: 'public', unlimited: true },
      schema: {
        tags: ['speech-to-text'],
        operationId: 'connectLiveTranscription',
        summary: 'Transcribe live audio over a WebSocket',
        description: [
          'Upgrade to a WebSocket (RFC 6455) with credentials in the query: `apiKey`, or `token` and `workspace_id`.',
          'A key with scopes needs `stt:write`, and viewers are rejected. `docs/stt-websocket.md` describes the messages.',
          'Billed by the duration of the final transcripts. A request without an upgrade returns `ok`.',
        ].join('\n'),
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
