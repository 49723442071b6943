import { join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { VoiceCaller, VoicePatch, VoiceUpload } from '../../actors/voices/voice-desk.ts';
import { callerOf, principalOf } from '../auth.ts';
import { addressOf } from '../client-address.ts';
import { clientSignal } from '../client-signal.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { acceptForms, receiveForm, type UploadedFile } from '../multipart.ts';
import { mintPlaybackUrl } from '../playback.ts';
import { REFUSALS, responseOf, success, successOf } from '../schemas/envelope.ts';
import {
  AddedSamplesSchema,
  CreatedVoiceSchema,
  ListedVoiceSchema,
  ProfessionalVoiceBody,
  presentListedVoice,
  presentVoice,
  readSamplesForm,
  readVoiceBody,
  readVoiceForm,
  SAMPLES_FIELDS,
  SamplesFormSchema,
  UpdatedVoiceSchema,
  VOICE_FIELDS,
  VoiceFormSchema,
  VoicePatchBody,
  VoiceSchema,
} from '../schemas/voice.ts';

const TAGS = ['voices'];
const MAX_FILE_BYTES = 25 * 2 ** 20;
const MOST_FILES = 25;
/** Of one request. */
const MAX_BYTES = 250 * 2 ** 20;
const IdParams = Type.Object({ id: Type.String({ maxLength: 64, description: 'UUID of the voice.' }) });

type FormFields = Record<string, string | string[]>;

/** What was received of a form by the time its handler runs. */
interface Received {
  upload: VoiceUpload;
  files: UploadedFile[];
  signal: AbortSignal;
}

export function voiceRoutes(app: HttpApp, context: HttpContext): void {
  const { voices, closing, logger } = context;
  const received = new WeakMap<FastifyRequest, Received>();

  app.get(
    '/voices',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listVoices',
        summary: 'Voices of a model: those of the workspace, then those of the platform',
        querystring: Type.Object({
          model: Type.Enum(['quality', 'fast'], {
            default: 'quality',
            description: '`quality`: professional voices, `svc Quality`. `fast`: cloned and plain ones, `svc Fast`.',
          }),
          status: Type.Enum(['ready', 'all'], {
            default: 'ready',
            description: '`all`: also voices of the workspace that are being made, or failed.',
          }),
        }),
        response: { 200: responseOf(ListResponse), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { model, status } = request.query;
      const data = await voices.list({ workspaceId, tier: model, unready: status === 'all' });
      const message = `${data.length} voices of the model ${model}.`;
      return { success: true, message, data: data.map(presentListedVoice), meta: { model } };
    },
  );

  app.get(
    '/voices/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getVoice',
        summary: 'One voice, with a sample of how it sounds',
        description: 'Whoever asks first may wait some seconds for the sample to be spoken.',
        params: IdParams,
        response: { 200: successOf(VoiceSchema, 'The voice.'), ...REFUSALS },
      },
    },
    async (request) => {
      const key = { workspaceId: principalOf(request).workspaceId, voiceId: request.params.id };
      const voice = await voices.get(key);
      const objectKey = await voices.sample(key).catch((error: unknown) => {
        logger.warn({ voiceId: voice.id, err: error }, 'a sample of a voice cannot be had');
        return null;
      });
      const minted = objectKey === null ? null : await mintPlaybackUrl(context, { objectKey, request });
      return success(presentVoice(voice, { sampleUrl: minted?.playback_url ?? null }));
    },
  );

  app.put(
    '/voices/:id',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'updateVoice',
        summary: 'Rename or describe a voice of the workspace',
        params: IdParams,
        body: VoicePatchBody,
        response: { 200: successOf(UpdatedVoiceSchema, 'Changed.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { name, ...rest } = request.body as VoicePatch;
      const patch = { ...rest, ...(name !== undefined && { name: name.trim() }) };
      const voice = await voices.update({ voiceId: request.params.id, patch, by: senderOf(request) });
      const { id, description, updatedAt } = voice;
      return success({ id, name: voice.name, description, updated_at: updatedAt.toISOString() });
    },
  );

  app.delete(
    '/voices/:id',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'deleteVoice',
        summary: 'Remove a voice of the workspace, its samples and what was made of them',
        description: 'Texts that are being spoken go on. That the speaker had agreed stays recorded.',
        params: IdParams,
        response: {
          200: successOf(
            Type.Object(
              { id: Type.String(), deleted: Type.Literal(true) },
              { examples: [{ id: '6f6a1a0e-6c0f-4b39-9a43-0d9f4b1f8e11', deleted: true }] },
            ),
            'Removed.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { id } = request.params;
      await voices.remove({ voiceId: id, by: senderOf(request) });
      return success({ id, deleted: true });
    },
  );

  app.post(
    '/voices/professional',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'createProfessionalVoice',
        summary: 'Begin a professional voice; its samples follow',
        description:
          'It is `pending` until it has samples: send them to POST /voices/professional/{id}/samples, in as many requests as it takes.',
        body: ProfessionalVoiceBody,
        response: {
          201: successOf(CreatedVoiceSchema, 'It waits for samples: its status is `pending`.'),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const voice = await voices.create({ ...readVoiceBody(request.body), samples: null, by: senderOf(request) });
      return reply.code(201).send(success({ voice_id: voice.id, status: voice.status }));
    },
  );

  app.register(async (scope: HttpApp) => {
    acceptForms(scope as unknown as FastifyInstance, { mostFiles: MOST_FILES });
    scope.post<{ Body: FormFields }>(
      '/voices',
      {
        config: { access: 'writer', receiveBody: (request, reply) => receive(request, reply, VOICE_FIELDS) },
        // `readVoiceForm` reads what is text in a form.
        validatorCompiler: () => () => true,
        schema: {
          tags: TAGS,
          operationId: 'cloneVoice',
          summary: 'Make a voice of samples of a speaker',
          description: CLONE_DESCRIPTION,
          consumes: ['multipart/form-data'],
          body: VoiceFormSchema as unknown as ReturnType<typeof Type.Unsafe<FormFields>>,
          response: { 201: successOf(CreatedVoiceSchema, 'It is `processing`.'), ...REFUSALS },
        },
      },
      async (request, reply) => {
        const form = readVoiceForm(request.body);
        const voice = await voices.create({ ...form, samples: samplesOf(request), by: senderOf(request) });
        return reply.code(201).send(success({ voice_id: voice.id, status: voice.status }));
      },
    );

    scope.post<{ Body: FormFields; Params: { id: string } }>(
      '/voices/professional/:id/samples',
      {
        config: {
          access: 'writer',
          receiveBody: (request, reply) => receive(request, reply, SAMPLES_FIELDS, { fewestFiles: 0 }),
        },
        // `readSamplesForm` reads what is text in a form.
        validatorCompiler: () => () => true,
        schema: {
          tags: TAGS,
          operationId: 'addVoiceSamples',
          summary: 'Add samples to a professional voice',
          description: SAMPLES_DESCRIPTION,
          consumes: ['multipart/form-data'],
          params: IdParams as unknown as ReturnType<typeof Type.Unsafe<{ id: string }>>,
          body: SamplesFormSchema as unknown as ReturnType<typeof Type.Unsafe<FormFields>>,
          response: { 200: successOf(AddedSamplesSchema, 'Added.'), ...REFUSALS },
        },
      },
      async (request) => {
        const { isLast } = readSamplesForm(request.body);
        const addition = { voiceId: request.params.id, samples: samplesOf(request), isLast, by: senderOf(request) };
        const { voice, sampleMs } = await voices.addSamples(addition);
        return success({ voice_id: voice.id, status: voice.status, sample_seconds: Math.round(sampleMs / 100) / 10 });
      },
    );
  });

  /** Takes the form, whose files are gone when the response is out, or its client is. */
  async function receive(
    request: FastifyRequest,
    reply: FastifyReply,
    fields: Readonly<Record<string, 'once'>>,
    { fewestFiles = 1 }: { fewestFiles?: number } = {},
  ): Promise<void> {
    const signal = clientSignal(reply, closing);
    const upload = await voices.beginUpload({ userId: callerOf(request).userId });
    const end = () => {
      upload.end().catch((error: unknown) => logger.warn({ err: error }, 'samples of a voice could not be removed'));
    };
    if (reply.raw.closed) end();
    else reply.raw.once('close', end);
    const form = await receiveForm(request, {
      fileField: 'files',
      fileFieldAlias: 'files[]',
      fewestFiles,
      mostFiles: MOST_FILES,
      fields,
      pathOf: (index) => join(upload.folder, `upload-${index}`),
      maxFileBytes: MAX_FILE_BYTES,
      maxBytes: MAX_BYTES,
      signal,
    });
    received.set(request, { upload, files: form.files, signal });
    request.body = form.fields;
  }

  function samplesOf(request: FastifyRequest) {
    const { upload, files, signal } = received.get(request)!;
    return { files, folder: upload.folder, signal };
  }
}

function senderOf(request: FastifyRequest): VoiceCaller {
  const { workspaceId, userId, apiKeyId } = principalOf(request);
  return { workspaceId, userId, apiKeyId, requestId: request.id, address: addressOf(request) };
}

const CLONE_DESCRIPTION = [
  'Of 5 seconds to 10 minutes of one speaker in all, best a minute without noise. A file that is no audio refuses the',
  'request, and nothing is kept of it. The voice is `processing`, then `ready` or `failed`: GET /voices/{id} and the',
  'webhook events voice.ready and voice.failed tell. Where no engine is installed that clones, it is the nearest voice',
  'there is, fitted to the speaker and marked `approximate`. A workspace has at most 100 voices of its own.',
].join(' ');

const SAMPLES_DESCRIPTION = [
  'In as many requests as it takes, 3 hours of speech in all at most; the same audio sent again is one sample. The voice',
  'is made when a request says complete=true and there is a minute of speech (VOICE_SAMPLE_UNUSABLE otherwise, and',
  'nothing of that request is kept), or by itself once there are 30 minutes. A request that only says complete=true',
  'needs no files. While it is made it takes no more (VOICE_NOT_READY), nor once it is ready (VOICE_NOT_EDITABLE); a',
  'voice that failed can be given more and completed again.',
].join(' ');

const ListResponse = Type.Object(
  {
    success: Type.Literal(true),
    message: Type.String({ examples: ['1 voices of the model quality.'] }),
    data: Type.Array(ListedVoiceSchema),
    meta: Type.Object({ model: Type.Enum(['quality', 'fast']) }),
  },
  { description: 'All of them.' },
);
