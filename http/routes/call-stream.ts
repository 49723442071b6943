import { Readable } from 'node:stream';
import { Type } from 'typebox';
import type { PublicCallEvent } from '../../actors/call-view.ts';
import { TandemError } from '../../machines/errors.ts';
import { type CallRow, hasEvents } from '../../storage/queries/calls.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { abortWithClient } from '../credential-watch.ts';
import { EVENT_STREAM_HEADERS, isFinal, streamCallEvents } from '../event-stream.ts';
import { countStreams } from '../open-streams.ts';
import { baseUrlOf, mayAccessMedia, seesAsMuch } from '../playback.ts';
import { CALL_EVENT_EXAMPLE, CallParams } from '../schemas/call.ts';
import { REFUSALS, responseOf, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { mintStreamToken } from '../stream-tokens.ts';
import { storedEvents, withoutTranscript } from './stored-events.ts';

export interface StreamRouteOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

/** Each stream holds a socket until its call ends. */
const MAX_STREAMS = 1000;

export function streamRoute(app: HttpApp, { context, findCall }: StreamRouteOptions): void {
  const { sql, dialer, heartbeatMs } = context;
  const streams = countStreams(MAX_STREAMS);

  app.post(
    '/dialer/click2call/:id/stream-token',
    {
      config: { access: 'member' },
      schema: {
        tags: ['click-to-call'],
        operationId: 'createStreamToken',
        summary: 'Create a token for the event stream of a call',
        description:
          'Returns a token that opens the event stream of this call from a browser, as often as needed within five minutes: `new EventSource(url)`. It stops working when the API key or session that created it ends. Tandem extension.',
        params: CallParams,
        response: { 201: successOf(TokenSchema, 'The token.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const { callId } = await findCall(request.params.id, principal);
      const signing = { secret: context.urlSigningSecret, now: context.now() };
      const { token, expiresAt } = mintStreamToken({ callId, principal }, signing);
      const url = `${baseUrlOf(context, request)}/dialer/click2call/${callId}/stream?token=${token}`;
      return reply.code(201).send(success({ token, expires_at: expiresAt.toISOString(), url }));
    },
  );

  app.get(
    '/dialer/click2call/:id/stream',
    {
      config: { access: 'member', acceptsStreamToken: true, streams: 'always' },
      exposeHeadRoute: false,
      schema: {
        tags: ['click-to-call'],
        operationId: 'streamCallEvents',
        summary: 'Stream the events of a call',
        description:
          'Sends the events of the call as Server-Sent Events until its terminal event. The id of each event is its sequence: reconnect with Last-Event-ID to receive only later events. Returns 204, which stops an EventSource, if the client has already received the terminal event.',
        params: CallParams,
        querystring: Type.Object({
          token: Type.Optional(
            Type.String({
              description:
                'Token of POST /dialer/click2call/{id}/stream-token, instead of the Authorization header, which an EventSource cannot send.',
            }),
          ),
        }),
        headers: Type.Object({
          'last-event-id': Type.Optional(Type.String({ description: 'Sequence of the last event received.' })),
        }),
        response: {
          200: responseOf({
            description: 'A stream of events.',
            content: { 'text/event-stream': { schema: Type.String({ examples: [STREAM_EXAMPLE] }) } },
          }),
          204: responseOf(
            Type.Null({ description: 'The client has received the terminal event, or the events were deleted.' }),
          ),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const call = await findCall(request.params.id, principal);
      if (request.streamTarget !== null && request.streamTarget.callId !== call.callId) {
        throw new TandemError('FORBIDDEN', 'The stream token was created for another stream.');
      }
      // A sequence from the future must not hide the events that will get it.
      const afterSequence = Math.min(readSequence(request.headers['last-event-id']), call.seq);
      if (isFinal(call) && afterSequence >= call.seq) return reply.code(204).send();
      // Old events may have been deleted, and no others will follow.
      if (isFinal(call) && !(await hasEvents(sql, { callId: call.callId, afterSequence })))
        return reply.code(204).send();

      const ended = new AbortController();
      streams.add(call.workspaceId, ended.signal);
      abortWithClient(context, { principal, reply, ended, mayStay: seesAsMuch(principal) });
      const show = mayAccessMedia(call, principal) ? (event: PublicCallEvent) => event : withoutTranscript;
      const events = streamCallEvents({
        afterSequence,
        watch: (listener, signal) => dialer.watch(call.callId, (event) => listener(show(event)), signal),
        loadEvents: async (afterSequence) =>
          (await storedEvents(sql, { callId: call.callId, afterSequence })).map(show),
        heartbeatMs,
        signal: ended.signal,
      });
      return reply.headers(EVENT_STREAM_HEADERS).send(Readable.from(events));
    },
  );
}

export const TokenSchema = Type.Object(
  {
    token: Type.String({ description: 'Token for the query of the stream.' }),
    expires_at: TimeSchema,
    url: Type.String({ description: 'URL of the stream, with the token.' }),
  },
  {
    examples: [
      {
        token: 'st_eyJjYWxsSWQiOiJjYWxsXzEifQ.c2lnbmF0dXJl',
        expires_at: '2026-01-31T09:35:00.000Z',
        url: 'https://voice.example.com/dialer/click2call/call_1/stream?token=st_eyJjYWxsSWQiOiJjYWxsXzEifQ.c2lnbmF0dXJl',
      },
    ],
  },
);

const STREAM_EXAMPLE = `id: ${CALL_EVENT_EXAMPLE.sequence}\nevent: ${CALL_EVENT_EXAMPLE.event}\ndata: ${JSON.stringify(CALL_EVENT_EXAMPLE)}\n\n`;

/** An invalid sequence counts as 0. The column is a 32-bit integer. */
function readSequence(header: unknown): number {
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) : 0;
}
