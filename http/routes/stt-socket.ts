import type { HttpApp } from '../context.ts';
import { STT_SOCKET_PATH } from '../websocket/stt-sockets.ts';
import { socketRoute } from './socket-route.ts';

export function sttSocketRoute(app: HttpApp): void {
  socketRoute(app, STT_SOCKET_PATH, {
    tags: ['speech-to-text'],
    operationId: 'connectLiveTranscription',
    summary: 'Transcribe live audio over a WebSocket',
    description: [
      'Upgrade to a WebSocket (RFC 6455). Send the credentials in the `Authorization` header, as the subprotocols `token`',
      'and the key, or in the query: `apiKey`, or `token` and `workspace_id`.',
      'A key with scopes needs `stt:write`, and viewers are rejected. `docs/stt-websocket.md` describes the messages.',
      'Billed by the duration of the final transcripts. A request without an upgrade returns `ok`.',
    ].join('\n'),
  });
}
