import type { HttpApp } from '../context.ts';
import { TTS_SOCKET_PATH } from '../websocket/tts-sockets.ts';
import { socketRoute } from './socket-route.ts';

export function ttsSocketRoute(app: HttpApp): void {
  socketRoute(app, TTS_SOCKET_PATH, {
    tags: ['speech'],
    operationId: 'connectLiveSynthesis',
    summary: 'Synthesise streamed text over a WebSocket',
    description: [
      'Upgrade to a WebSocket (RFC 6455). Send the credentials in the `Authorization` header, as the subprotocols `token`',
      'and the key, or in the query: `apiKey`, or `token` and `workspace_id`. `voice_id`, `encoding`, `sample_rate` and',
      '`speed` are in the query, too. A key with scopes needs `tts:write`, and viewers are rejected. `docs/tts-websocket.md`',
      'describes the messages. Billed per character, sentence by sentence. A request without an upgrade returns `ok`.',
    ].join('\n'),
  });
}
