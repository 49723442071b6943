import { Readable } from 'node:stream';
import { Type } from 'typebox';
import type { PublicCallEvent } from '../../actors/call-view.ts';
import { TandemError } from '../../machines/errors.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { endWithClient } from '../credential-watch.ts';
import { isFinal, streamCallEvents } from '../event-stream.ts';
import { mayHear } from '../playback.ts';
import { CALL_EVENT_EXAMPLE } from '../schemas/call.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import { storedEvents, withoutWords } from './stored-events.ts';

export interface StreamRouteOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

/** Each holds a socket for as long as a call lasts. */
const MAX_STREAMS = 1000;

export function streamRoute(app: HttpApp, { context, findCall }: StreamRouteOptions): void {
  const { sql, dialer, heartbeatMs } = context;
  const openStreams = new Map<string, number>();

  /** @throws TandemError RATE_LIMITED. The stream counts until the signal aborts. */
  function countStream(workspaceId: string, signal: AbortSignal): void {
    const open = openStreams.get(workspaceId) ?? 0;
    if (open >= MAX_STREAMS) {
      const message = `At most ${MAX_STREAMS} streams of a workspace may be open.`;
      throw new TandemError('RATE_LIMITED', message, { retryAfterS: 30 });
    }
    openStreams.set(workspaceId, open + 1);
    const release = () => {
      const left = (openStreams.get(workspaceId) ?? 1) - 1;
      if (left === 0) openStreams.delete(workspaceId);
      else openStreams.set(workspaceId, left);
    };
    signal.addEventListener('abort', release, { once: true });
  }

  app.get(
    '/dialer/click2call/:id/stream',
    {
      config: { access: 'member' },
      exposeHeadRoute: false,
      schema: {
        tags: ['click-to-call'],
        operationId: 'streamCallEvents',
        summary: 'Server-Sent Events of a call, from its first to its terminal event',
        description:
          'Each event has its sequence as id; with Last-Event-ID only later ones are sent. 204 tells an EventSource that there will be no more.',
        params: Type.Object({ id: Type.String({ description: 'The call_id or the reference_id.' }) }),
        headers: Type.Object({ 'last-event-id': Type.Optional(Type.String({ description: 'A sequence.' })) }),
        response: {
          200: responseOf({
            description: 'Events.',
            content: { 'text/event-stream': { schema: Type.String({ examples: [STREAM_EXAMPLE] }) } },
          }),
          204: responseOf(Type.Null({ description: 'The client has seen the terminal event.' })),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const call = await findCall(request.params.id, principal);
      // A sequence that does not exist yet must not swallow the events that will have it.
      const afterSequence = Math.min(readSequence(request.headers['last-event-id']), call.seq);
      if (isFinal(call) && afterSequence >= call.seq) return reply.code(204).send();

      const ended = new AbortController();
      countStream(call.workspaceId, ended.signal);
      endWithClient(context, { principal, reply, ended });
      const show = mayHear(call, principal) ? (event: PublicCallEvent) => event : withoutWords;
      const events = streamCallEvents({
        afterSequence,
        watch: (listener, signal) => dialer.watch(call.callId, (event) => listener(show(event)), signal),
        loadEvents: async (afterSequence) =>
          (await storedEvents(sql, { callId: call.callId, afterSequence })).map(show),
        heartbeatMs,
        signal: ended.signal,
      });
      return reply
        .headers({
          'content-type': 'text/event-stream; charset=utf-8',
          'cache-control': 'no-cache, no-transform',
          // An idle connection left behind by a stream would hold up the server's close.
          connection: 'close',
          // nginx would hold events back.
          'x-accel-buffering': 'no',
        })
        .send(Readable.from(events));
    },
  );
}

const STREAM_EXAMPLE = `id: ${CALL_EVENT_EXAMPLE.sequence}\nevent: ${CALL_EVENT_EXAMPLE.event}\ndata: ${JSON.stringify(CALL_EVENT_EXAMPLE)}\n\n`;

/** What is no sequence counts as none seen. The column is a 32-bit integer. */
function readSequence(header: unknown): number {
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) : 0;
}
