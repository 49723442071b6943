import { Type } from 'typebox';
import { presentCall, presentTranscript } from '../../actors/call-view.ts';
import { TandemError } from '../../machines/errors.ts';
import { type CallRow, findRecordingTarget, getCall, listCalls } from '../../storage/queries/calls.ts';
import { getRecording } from '../../storage/queries/recordings.ts';
import { getTranscript } from '../../storage/queries/transcripts.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { mayHear, mintPlaybackUrl, requirePlayable, requireTrunk } from '../playback.ts';
import { CallStateSchema, RecordingSchema, TranscriptSchema } from '../schemas/call.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, shared, success, successOf } from '../schemas/envelope.ts';
import { readMobile } from '../schemas/phone-number.ts';
import { type PlacementBody, PlacementSchema, parsePlacement, REFERENCE } from '../schemas/placement.ts';
import { readTime } from '../schemas/time.ts';
import { validationFailed } from '../validation.ts';
import { streamRoute } from './call-stream.ts';
import { storedEvents, withoutWords } from './stored-events.ts';

const TAGS = ['click-to-call'];
const IdParams = Type.Object({ id: Type.String({ description: 'The call_id or the reference_id.' }) });
const CallData = Type.Object({ call: shared('Call') });

export function click2callRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, dialer } = context;

  app.post<{ Body: PlacementBody }>(
    '/dialer/click2call',
    {
      config: { access: 'writer' },
      // `parsePlacement` checks: each field has its own error code.
      validatorCompiler: () => () => true,
      schema: {
        tags: TAGS,
        operationId: 'placeCall',
        summary: 'Ring an agent, then a customer, and bridge them',
        description:
          'Fields are checked in the order listed; the first that is wrong is refused with its own code. A field that is not listed is refused last. A reference_id that was used before is never dialed again.',
        body: PlacementSchema,
        response: {
          200: successOf(
            placedSchema({ placed: false, replayed: true }),
            'The reference is bound to a live call: that call; nothing was dialed.',
          ),
          201: successOf(
            placedSchema({ placed: true, replayed: false }),
            'The call was admitted and the agent is being dialed.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const placement = parsePlacement(request.body);
      const { workspaceId, placedVia, apiKeyId, apiKeyName, userId } = principalOf(request);
      const placed = await dialer.place({ workspaceId, placedVia, apiKeyId, apiKeyName, userId, ...placement });
      return reply.code(placed.replayed ? 200 : 201).send(success(placed));
    },
  );

  app.get(
    '/dialer/click2call',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listCalls',
        summary: 'Calls of the workspace, newest first',
        querystring: ListQuery,
        response: { 200: successOf(pageOf('calls', shared('Call')), 'One page of calls.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { page, limit, state, reference_id: referenceId } = request.query;
      if (referenceId !== undefined && !REFERENCE.test(referenceId)) {
        throw validationFailed([{ path: 'reference_id', message: 'cannot be a reference' }]);
      }
      const filters = {
        workspaceId: principalOf(request).workspaceId,
        state,
        referenceId,
        from: readTime('from', request.query.from),
        to: readTime('to', request.query.to),
        agentNumber: readMobile('agent_number', request.query.agent_number),
        customerNumber: readMobile('customer_number', request.query.customer_number),
      };
      const { rows, total } = await listCalls(sql, filters, { page, limit });
      return success({ calls: rows.map(presentCall), pagination: paginationOf({ page, limit }, total) });
    },
  );

  app.get(
    '/dialer/click2call/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getCall',
        summary: 'One call',
        params: IdParams,
        querystring: Type.Object({
          refresh: Type.Optional(
            Type.Boolean({ description: '1 makes a finished call look for audio that has since appeared.' }),
          ),
        }),
        response: { 200: successOf(CallData, 'The call.'), ...REFUSALS },
      },
    },
    async (request) => {
      const call = await findCall(context, { id: request.params.id, principal: principalOf(request) });
      const lookAgain = request.query.refresh === true && call.recordRequested && presentCall(call).call_done;
      if (!lookAgain) return success({ call: presentCall(call) });
      await dialer.refreshRecording(call.callId);
      const refreshed = await findCall(context, { id: call.callId, principal: principalOf(request) });
      return success({ call: presentCall(refreshed) });
    },
  );

  app.get(
    '/dialer/click2call/:id/events',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listCallEvents',
        summary: 'The event log of a call, with what became of each callback',
        params: IdParams,
        response: {
          200: successOf(Type.Object({ events: Type.Array(shared('CallEvent')) }), 'All events so far, in order.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const call = await findCall(context, { id: request.params.id, principal });
      const events = await storedEvents(sql, { callId: call.callId });
      return success({ events: mayHear(call, principal) ? events : events.map(withoutWords) });
    },
  );

  streamRoute(app, { context, findCall: (id, principal) => findCall(context, { id, principal }) });

  app.post(
    '/dialer/click2call/:id/hangup',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'hangUpCall',
        summary: 'End a live call; a finished one is returned as it is',
        params: IdParams,
        response: { 200: successOf(CallData, 'The call as it is now.'), ...REFUSALS },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const { callId } = await findCall(context, { id: request.params.id, principal });
      return success({ call: await dialer.hangup({ workspaceId: principal.workspaceId, callId }) });
    },
  );

  app.get(
    '/dialer/click2call/:id/transcript',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getCallTranscript',
        summary: 'What was said in a call that was placed with `transcribe: true`',
        description:
          'For the user who placed the call, like its recording. While they talk it grows with every `transcript.final`; what was said last may come a few seconds after the call has ended. Beyond the specification.',
        params: IdParams,
        response: { 200: successOf(TranscriptSchema, 'The transcript so far.'), ...REFUSALS },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const call = await findCall(context, { id: request.params.id, principal });
      if (!mayHear(call, principal)) {
        throw new TandemError('TRANSCRIPT_NOT_OWNED', 'The transcript belongs to another user of the workspace.');
      }
      return success(presentTranscript(call.callId, await getTranscript(sql, call.callId)));
    },
  );

  app.post(
    '/dialer/click2call/:id/recording',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'mintCallRecordingUrl',
        summary: 'A signed URL that plays the recording for five minutes',
        params: Type.Object({ id: Type.String({ description: 'The call_id, reference_id or recording_id.' }) }),
        response: {
          200: successOf(Type.Object({ recording: RecordingSchema }), 'The recording with its playback URL.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      await requireTrunk(context, principal);
      const { workspaceId } = principal;
      const { id } = request.params;
      const call = couldBeId(id) ? await findRecordingTarget(sql, workspaceId, id) : null;
      if (call === null)
        throw new TandemError('CALL_NOT_FOUND', 'There is no such call, reference or recording in the workspace.');
      const stored = call.recordingId === null ? null : await getRecording(sql, call.recordingId);
      const recording = requirePlayable(call, { recording: stored, principal });
      return success({
        recording: {
          call_id: call.callId,
          recording_id: recording.id,
          recording_status: recording.status,
          recording_format: recording.format,
          recording_size: recording.sizeBytes,
          ...(await mintPlaybackUrl(context, { objectKey: recording.objectKey, request })),
        },
      });
    },
  );
}

function placedSchema(outcome: { placed: boolean; replayed: boolean }) {
  return Type.Object({
    placed: Type.Boolean({ examples: [outcome.placed] }),
    replayed: Type.Boolean({ examples: [outcome.replayed] }),
    call: shared('Call'),
  });
}

const ListQuery = Type.Object({
  ...PAGE_QUERY,
  state: Type.Optional(CallStateSchema),
  from: Type.Optional(Type.String({ description: 'Created at or after: ISO 8601.' })),
  to: Type.Optional(Type.String({ description: 'Created before: ISO 8601.' })),
  agent_number: Type.Optional(Type.String({ description: 'In any accepted form.' })),
  customer_number: Type.Optional(Type.String({ description: 'In any accepted form.' })),
  reference_id: Type.Optional(Type.String()),
});

/** @throws TandemError CALL_NOT_FOUND, for the calls of other workspaces too. */
async function findCall(
  { sql }: HttpContext,
  { id, principal: { workspaceId } }: { id: string; principal: Principal },
): Promise<CallRow> {
  const call = couldBeId(id) ? await getCall(sql, { workspaceId, idOrReference: id }) : null;
  if (call === null) throw new TandemError('CALL_NOT_FOUND', 'There is no such call in the workspace.');
  return call;
}

/** Call ids, references and recording ids all keep to the characters of a reference; the rest cannot be in the database. */
function couldBeId(id: string): boolean {
  return REFERENCE.test(id);
}
