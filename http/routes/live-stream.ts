import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { abortWithClient } from '../credential-watch.ts';
import { EVENT_STREAM_HEADERS } from '../event-stream.ts';
import { ChangeFeed } from '../live/change-feed.ts';
import { MAX_SNAPSHOT_CALLS, streamLiveCalls } from '../live/live-stream.ts';
import { countStreams } from '../open-streams.ts';
import { baseUrlOf, mayAccessMedia, seesAsMuch } from '../playback.ts';
import { REFUSALS, responseOf, success, successOf } from '../schemas/envelope.ts';
import { LIVE_STREAM_EXAMPLE } from '../schemas/live-stream.ts';
import { withStallTimeout } from '../stall-timeout.ts';
import { mintStreamToken } from '../stream-tokens.ts';
import { TokenSchema } from './call-stream.ts';

const TAGS = ['click-to-call'];
const MAX_STREAMS = 200;

export function liveStreamRoute(app: HttpApp, context: HttpContext): void {
  const { sql, now, heartbeatMs, logger } = context;
  const streams = countStreams(MAX_STREAMS);
  const feed = new ChangeFeed(context);

  app.post(
    '/dialer/stream-token',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'createLiveStreamToken',
        summary: 'Create a token for the stream of live calls',
        description:
          'Returns a token that opens the stream of the live calls of this workspace from a browser, as often as needed within five minutes: `new EventSource(url)`. It stops working when the API key or session that created it ends. Tandem extension.',
        response: { 201: successOf(TokenSchema, 'The token.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const signing = { secret: context.urlSigningSecret, now: now() };
      const { token, expiresAt } = mintStreamToken({ callId: null, principal: principalOf(request) }, signing);
      const url = `${baseUrlOf(context, request)}/dialer/stream?token=${token}`;
      return reply.code(201).send(success({ token, expires_at: expiresAt.toISOString(), url }));
    },
  );

  app.get(
    '/dialer/stream',
    {
      config: { access: 'member', acceptsStreamToken: true, streams: 'always' },
      exposeHeadRoute: false,
      schema: {
        tags: TAGS,
        operationId: 'streamLiveCalls',
        summary: 'Stream the live calls of the workspace',
        description: DESCRIPTION,
        querystring: Type.Object({
          token: Type.Optional(
            Type.String({
              description:
                'Token of POST /dialer/stream-token, instead of the Authorization header, which an EventSource cannot send.',
            }),
          ),
        }),
        headers: Type.Object({
          'last-event-id': Type.Optional(Type.String({ description: 'Id of the last event received.' })),
        }),
        response: {
          200: responseOf({
            description: 'A stream of events.',
            content: { 'text/event-stream': { schema: Type.String({ examples: [LIVE_STREAM_EXAMPLE] }) } },
          }),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const { workspaceId } = principal;
      if (request.streamTarget !== null && request.streamTarget.callId !== null) {
        throw new TandemError('FORBIDDEN', 'The stream token was created for another stream.');
      }
      const logSlow = () => logger.warn({ workspaceId }, 'dropped a slow client of the stream of live calls');
      const ended = new AbortController();
      const { signal } = ended;
      streams.add(workspaceId, signal);
      abortWithClient(context, { principal, reply, ended, mayStay: seesAsMuch(principal) });
      const events = streamLiveCalls({
        ...{ sql, workspaceId, now, heartbeatMs, signal },
        lastEventId: request.headers['last-event-id'],
        subscribe: (listener) => feed.subscribe(workspaceId, listener, signal),
        mayReadTranscript: (call) => mayAccessMedia(call, principal),
        onOverflow: logSlow,
      });
      const frames = withStallTimeout(events, {
        withinMs: context.stallTimeoutMs,
        onStalled() {
          logSlow();
          reply.raw.destroy();
        },
      });
      return reply.headers(EVENT_STREAM_HEADERS).send(Readable.from(frames));
    },
  );
}

const DESCRIPTION = `Sends what happens in the live calls of the workspace as Server-Sent Events. The stream has no end.

- \`snapshot\`: \`calls\`, the live calls, newest first, ${MAX_SNAPSHOT_CALLS} at most, and whether they are \`truncated\`. Replace what you know by it. Each call is the call object with \`sequence\` (of its latest event), \`price_per_minute_usd\` and \`cost_so_far_usd\`.
- \`call\`: a call was created, has moved or has ended. \`call\` is the same object, without \`metadata\` and the fields of the callback; \`events\` are its events since the last one, without transcripts.
- \`level\`: \`call_id\`, and for each of \`legs\` the \`level_dbov\` of what it says, from -96 for silence to 0, and whether it is \`speaking\`. At most twice a second for a call.
- \`quality\`: \`call_id\`, and for each of \`legs\` what was measured since its start, as in \`quality\` of the call. Every few seconds.
- \`transcript\`: a segment, as in the transcript of a call, with \`call_id\`. \`is_final\` is false while the leg is speaking: the next segment of the leg replaces it. Only for calls whose transcript you may read.
- \`dropped\`: you read too slowly. The stream ends; reconnect.

Reconnect with Last-Event-ID, as an EventSource does, to receive every \`call\` event and final segment that you missed, some of them perhaps again: ignore an event whose \`sequence\` you have. After 15 minutes, or more than 1,000 events, you receive a new \`snapshot\` instead. Tandem extension.`;
