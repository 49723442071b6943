import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { getCallById } from '../../storage/queries/calls.ts';
import { getRecording } from '../../storage/queries/recordings.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { defaultToEmptyBody } from '../empty-body.ts';
import { mintRecordingUrls, PLAYBACK_FORM, PlaybackBody, requirePlayable, requireTrunk } from '../playback.ts';
import { PeaksUrlSchema, PlaybackUrlSchema } from '../schemas/call.ts';
import { REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';

export function recordingRoutes(app: HttpApp, context: HttpContext): void {
  const { sql } = context;

  app.post(
    '/dialer/recordings/:id/playback-url',
    {
      config: { access: 'member' },
      preValidation: defaultToEmptyBody,
      schema: {
        tags: ['click-to-call'],
        operationId: 'mintPlaybackUrl',
        summary: 'Create a playback URL for a recording',
        description:
          'Returns a signed URL that plays the recording for five minutes, in the format you choose. Each request creates a new URL. Only the user who placed the call can play it.',
        params: Type.Object({ id: Type.String({ description: 'recording_id of the call.' }) }),
        querystring: Type.Object(PLAYBACK_FORM),
        body: PlaybackBody,
        response: {
          200: successOf(
            Type.Object({ playback_url: PlaybackUrlSchema, expires_at: TimeSchema, peaks_url: PeaksUrlSchema }),
            'The playback URL.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      await requireTrunk(context, principal);
      const stored = await getRecording(sql, request.params.id);
      const call = stored?.workspaceId === principal.workspaceId ? await getCallById(sql, stored.callId) : null;
      if (call === null) throw new TandemError('CALL_NOT_FOUND', 'No recording in this workspace has this id.');
      const recording = requirePlayable(call, { recording: stored, principal });
      const minted = await mintRecordingUrls(context, {
        recording,
        form: { ...request.query, ...request.body },
        request,
      });
      return success({
        playback_url: minted.playback_url,
        expires_at: minted.expires_at,
        peaks_url: minted.peaks_url,
      });
    },
  );
}
