import { Type } from 'typebox';
import { inTransaction } from '../../storage/database.ts';
import {
  getRecordingSettings,
  type RecordingSettings,
  updateRecordingSettings,
} from '../../storage/queries/recording-settings.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { recordAction } from '../recorded-action.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';

const TAGS = ['click-to-call'];
const RetentionSchema = Type.Union([
  Type.Integer({
    minimum: 1,
    maximum: 3650,
    description: 'Days after which a recording is deleted, 1 to 3650. Null: recordings are kept.',
    examples: [90],
  }),
  Type.Null(),
]);
const BeepSchema = Type.Boolean({
  description: 'Play a tone to both parties when a recording starts, unless a placement sets `recording_beep`.',
});
const SettingsSchema = Type.Object(
  { retention_days: RetentionSchema, recording_beep: BeepSchema },
  { examples: [{ retention_days: 90, recording_beep: true }] },
);

export function recordingSettingsRoutes(app: HttpApp, { sql, now }: HttpContext): void {
  app.get(
    '/dialer/recording-settings',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getRecordingSettings',
        summary: 'Get the recording settings',
        description:
          'Returns how long the workspace keeps recordings, and whether a tone announces them. Tandem extension.',
        response: { 200: successOf(SettingsSchema, 'The recording settings.'), ...REFUSALS },
      },
    },
    async (request) => success(present(await getRecordingSettings(sql, principalOf(request).workspaceId))),
  );

  app.patch(
    '/dialer/recording-settings',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'updateRecordingSettings',
        summary: 'Change the recording settings',
        description:
          'Changes the fields you send. A shorter retention also applies to existing recordings: within an hour, recordings that are older are deleted for good, with their other formats and peaks. Admins and owners only. Written to the audit log. Tandem extension.',
        body: Type.Object(
          { retention_days: Type.Optional(RetentionSchema), recording_beep: Type.Optional(BeepSchema) },
          { additionalProperties: false, examples: [{ retention_days: 90 }] },
        ),
        response: { 200: successOf(SettingsSchema, 'The recording settings were saved.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { retention_days: retentionDays, recording_beep: beep } = request.body;
      const saved = await inTransaction(sql, async (tx) => {
        const settings = await updateRecordingSettings(tx, workspaceId, { retentionDays, beep });
        await recordAction(tx, request, {
          action: 'recording_settings.updated',
          target: { type: 'workspace', id: workspaceId },
          details: present(settings),
          now: now(),
        });
        return settings;
      });
      return success(present(saved));
    },
  );
}

function present({ retentionDays, beep }: RecordingSettings) {
  return { retention_days: retentionDays, recording_beep: beep };
}
