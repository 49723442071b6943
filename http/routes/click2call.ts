import { Type } from 'typebox';
import { presentCall, presentTranscript } from '../../actors/call-view.ts';
import { TandemError } from '../../machines/errors.ts';
import { type CallRow, findRecordingTarget, getCall } from '../../storage/queries/calls.ts';
import { getRecording } from '../../storage/queries/recordings.ts';
import { getTranscript } from '../../storage/queries/transcripts.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { defaultToEmptyBody } from '../empty-body.ts';
import {
  mayAccessMedia,
  mintRecordingUrls,
  PLAYBACK_FORM,
  PlaybackBody,
  requirePlayable,
  requireTrunk,
} from '../playback.ts';
import { CallParams, RecordingSchema, TranscriptSchema } from '../schemas/call.ts';
import { REFUSALS, shared, success, successOf } from '../schemas/envelope.ts';
import { type PlacementBody, PlacementSchema, parsePlacement, REFERENCE } from '../schemas/placement.ts';
import { callControlRoutes } from './call-control.ts';
import { callDeliveryRoutes } from './call-deliveries.ts';
import { callLedgerRoutes } from './call-ledger.ts';
import { callLegRoutes } from './call-legs.ts';
import { callListRoutes } from './call-list.ts';
import { callPlaybackRoutes } from './call-playback.ts';
import { callQualityRoutes } from './call-quality.ts';
import { callSipRoutes } from './call-sip.ts';
import { streamRoute } from './call-stream.ts';
import { callTransferRoutes } from './call-transfer.ts';
import { phoneRoutes } from './phone.ts';
import { callDeletionRoutes } from './privacy.ts';
import { storedEvents, withoutTranscript } from './stored-events.ts';

const TAGS = ['click-to-call'];
const CallData = Type.Object({ call: shared('Call') });

export function click2callRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, dialer, numberPlan } = context;

  app.post<{ Body: PlacementBody }>(
    '/dialer/click2call',
    {
      config: { access: 'writer' },
      // `parsePlacement` validates, because each field has its own error code.
      validatorCompiler: () => () => true,
      schema: {
        tags: TAGS,
        operationId: 'placeCall',
        summary: 'Place a call',
        description:
          'Rings the agent, then the customer, and bridges them. Talk time is billed per minute at the rate of the trunk; placing a call reserves its first minute in the wallet. Fields are validated in the order listed, and the first invalid one is reported with its own code. A reference_id is never dialed twice: repeating a live one with the same fields returns its call with status 200, with other fields it is rejected with REFERENCE_CONFLICT, and a finished one is rejected with REFERENCE_ALREADY_USED. A call rejected with 429 or 503 does not use up its reference_id, so you can retry with the same one.',
        body: PlacementSchema,
        response: {
          200: successOf(
            placedSchema({ placed: false, replayed: true }),
            'The reference_id belongs to a live call that was placed with the same fields. Returns that call; nothing is dialed.',
          ),
          201: successOf(
            placedSchema({ placed: true, replayed: false }),
            'The call was admitted, and the agent is being dialed.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const { workspaceId, placedVia, apiKeyId, apiKeyName, userId } = principalOf(request);
      const placement = parsePlacement(request.body, { ownUserId: userId, numberPlan });
      // With the same reference, an attempt after a crash finds the placed call.
      const minted = request.idempotentId === null ? null : `qc2c-${request.idempotentId}`;
      const referenceId = placement.referenceId ?? minted;
      const by = { workspaceId, placedVia, apiKeyId, apiKeyName, userId };
      const placed = await dialer.place({ ...by, ...placement, referenceId });
      return reply.code(placed.replayed ? 200 : 201).send(success(placed));
    },
  );

  callListRoutes(app, context);

  app.get(
    '/dialer/click2call/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getCall',
        summary: 'Get a call',
        description: 'Returns a call by its call_id or reference_id.',
        params: CallParams,
        querystring: Type.Object({
          refresh: Type.Optional(
            Type.Boolean({
              description: 'Set to `1` to make a finished call check again whether its recording is available.',
            }),
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
        summary: 'List the events of a call',
        description:
          'Returns the event log of the call, oldest first, with the delivery status of each callback. The text of `transcript.final` events is null for users who may not read the transcript.',
        params: CallParams,
        response: {
          200: successOf(Type.Object({ events: Type.Array(shared('CallEvent')) }), 'All events so far.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const call = await findCall(context, { id: request.params.id, principal });
      const events = await storedEvents(sql, { callId: call.callId });
      return success({ events: mayAccessMedia(call, principal) ? events : events.map(withoutTranscript) });
    },
  );

  const options = { context, findCall: (id: string, principal: Principal) => findCall(context, { id, principal }) };
  callControlRoutes(app, options);
  callPlaybackRoutes(app, options);
  callLegRoutes(app, options);
  callTransferRoutes(app, options);
  callSipRoutes(app, options);
  callQualityRoutes(app, options);
  callDeliveryRoutes(app, options);
  callLedgerRoutes(app, options);
  callDeletionRoutes(app, options);
  phoneRoutes(app, options);
  streamRoute(app, { context, findCall: (id, principal) => findCall(context, { id, principal }) });

  app.post(
    '/dialer/click2call/:id/hangup',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'hangUpCall',
        summary: 'Hang up a call',
        description: 'Ends a live call. The talk time up to then is billed. A finished call is returned unchanged.',
        params: CallParams,
        response: { 200: successOf(CallData, 'The call in its current state.'), ...REFUSALS },
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
        summary: "Get a call's transcript",
        description:
          'Returns the transcript of a call placed with `transcribe: true`. During the call it grows with every `transcript.final` event; the last segments can arrive a few seconds after the call ends. Only the user who placed the call can read it. Tandem extension.',
        params: CallParams,
        response: { 200: successOf(TranscriptSchema, 'The transcript so far.'), ...REFUSALS },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const call = await findCall(context, { id: request.params.id, principal });
      if (!mayAccessMedia(call, principal)) {
        throw new TandemError(
          'TRANSCRIPT_NOT_OWNED',
          'Another user placed this call. Only that user can read its transcript.',
        );
      }
      return success(presentTranscript(call, await getTranscript(sql, call.callId)));
    },
  );

  app.post(
    '/dialer/click2call/:id/recording',
    {
      config: { access: 'member' },
      preValidation: defaultToEmptyBody,
      schema: {
        tags: TAGS,
        operationId: 'mintCallRecordingUrl',
        summary: "Create a playback URL for a call's recording",
        description:
          'Returns a signed URL that plays the recording for five minutes, in the format you choose. Each request creates a new URL. Only the user who placed the call can play it. Check `recording_available` first, with `refresh=1`.',
        params: Type.Object({ id: Type.String({ description: 'call_id, reference_id or recording_id.' }) }),
        querystring: Type.Object(PLAYBACK_FORM),
        body: PlaybackBody,
        response: {
          200: successOf(Type.Object({ recording: RecordingSchema }), 'The recording, with its playback URL.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      await requireTrunk(context, principal);
      const { workspaceId } = principal;
      const { id } = request.params;
      const call = isIdSyntax(id) ? await findRecordingTarget(sql, workspaceId, id) : null;
      if (call === null) {
        throw new TandemError('CALL_NOT_FOUND', 'No call or recording in this workspace has this id or reference_id.');
      }
      const stored = call.recordingId === null ? null : await getRecording(sql, call.recordingId);
      const recording = requirePlayable(call, { recording: stored, principal });
      const { format, channels, sizeBytes, ...urls } = await mintRecordingUrls(context, {
        recording,
        form: { ...request.query, ...request.body },
        request,
      });
      return success({
        recording: {
          call_id: call.callId,
          recording_id: recording.id,
          recording_status: recording.status,
          recording_format: format,
          recording_channels: channels,
          recording_size: sizeBytes,
          recording_duration_ms: recording.durationMs,
          ...urls,
        },
      });
    },
  );
}

function placedSchema(outcome: { placed: boolean; replayed: boolean }) {
  return Type.Object({
    placed: Type.Boolean({ description: 'True if this request placed the call.', examples: [outcome.placed] }),
    replayed: Type.Boolean({
      description: 'True if the reference_id belongs to a call that an earlier request placed.',
      examples: [outcome.replayed],
    }),
    call: shared('Call'),
  });
}

/** @throws TandemError CALL_NOT_FOUND, also for calls of other workspaces */
async function findCall(
  { sql }: HttpContext,
  { id, principal: { workspaceId } }: { id: string; principal: Principal },
): Promise<CallRow> {
  const call = isIdSyntax(id) ? await getCall(sql, { workspaceId, idOrReference: id }) : null;
  if (call === null) throw new TandemError('CALL_NOT_FOUND', 'No call in this workspace has this id or reference_id.');
  return call;
}

/** Ids and references match this pattern, so anything else cannot be in the database. */
function isIdSyntax(id: string): boolean {
  return REFERENCE.test(id);
}
