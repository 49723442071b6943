import { join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { GivenSamples, VoiceCaller, VoicePatch, VoiceUpload } from '../../actors/voices/voice-desk.ts';
import { callerOf, principalOf } from '../auth.ts';
import { addressOf } from '../client-address.ts';
import { clientSignal } from '../client-signal.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { whileAuthorized } from '../credential-watch.ts';
import { acceptForms, receiveForm, type UploadedFile } from '../multipart.ts';
import { mintPlaybackUrl } from '../playback.ts';
import {
  PAGE_QUERY,
  PaginationSchema,
  paginationOf,
  REFUSALS,
  responseOf,
  success,
  successOf,
} from '../schemas/envelope.ts';
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
const MAX_FILES = 25;
const MAX_REQUEST_BYTES = 250 * 2 ** 20;
const IdParams = Type.Object({ id: Type.String({ maxLength: 64, description: 'Id of the voice.' }) });

type FormFields = Record<string, string | string[]>;

/** Set by `receive` before the handler runs. */
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
        summary: 'List voices',
        description: 'Returns the voices of a tier: those of the workspace first, then those of the platform.',
        querystring: Type.Object({
          model: Type.Enum(['quality', 'fast'], {
            default: 'quality',
            description:
              'Tier. `quality`: professional voices (`svc Quality`). `fast`: cloned and built-in voices (`svc Fast`).',
          }),
          status: Type.Enum(['ready', 'all'], {
            default: 'ready',
            description:
              '`ready`: voices you can use. `all`: also voices of the workspace that are in progress or failed.',
          }),
          ...PAGE_QUERY,
        }),
        response: { 200: responseOf(ListResponse), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { model, status, page, limit } = request.query;
      const all = await voices.list({ workspaceId, tier: model, unready: status === 'all' });
      const data = all.slice((page - 1) * limit, page * limit).map(presentListedVoice);
      const meta = { model, pagination: paginationOf({ page, limit }, all.length) };
      return { success: true, message: `${all.length} ${model} voices.`, data, meta };
    },
  );

  app.get(
    '/voices/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getVoice',
        summary: 'Get a voice',
        description:
          'Returns a voice with the URL of an audio sample. The first request for a voice can take some seconds, because it synthesises the sample.',
        params: IdParams,
        response: { 200: successOf(VoiceSchema, 'The voice.'), ...REFUSALS },
      },
    },
    async (request) => {
      const key = { workspaceId: principalOf(request).workspaceId, voiceId: request.params.id };
      const voice = await voices.get(key);
      const objectKey = await voices.sample(key).catch((error: unknown) => {
        logger.warn({ voiceId: voice.id, err: error }, 'voice sample synthesis failed');
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
        summary: 'Update a voice',
        description:
          'Changes the name or the description of a voice of the workspace. Built-in voices cannot be changed.',
        params: IdParams,
        body: VoicePatchBody,
        response: { 200: successOf(UpdatedVoiceSchema, 'The voice was updated.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { name, ...rest } = request.body as VoicePatch;
      const patch = { ...rest, ...(name !== undefined && { name: name.trim() }) };
      const voice = await voices.update({ voiceId: request.params.id, patch, by: voiceCallerOf(request) });
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
        summary: 'Delete a voice',
        description:
          "Deletes a voice of the workspace with its samples and model. Running synthesis requests finish. The record of the speaker's consent is kept.",
        params: IdParams,
        response: {
          200: successOf(
            Type.Object(
              { id: Type.String(), deleted: Type.Literal(true) },
              { examples: [{ id: '6f6a1a0e-6c0f-4b39-9a43-0d9f4b1f8e11', deleted: true }] },
            ),
            'The voice was deleted.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { id } = request.params;
      await voices.remove({ voiceId: id, by: voiceCallerOf(request) });
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
        summary: 'Create a professional voice',
        description:
          'Creates a voice with status `pending`. Upload its samples with POST /voices/professional/{id}/samples, in as many requests as you like. A workspace can have 100 voices.',
        body: ProfessionalVoiceBody,
        response: {
          201: successOf(CreatedVoiceSchema, 'The voice was created and waits for samples.'),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const voice = await voices.create({ ...readVoiceBody(request.body), samples: null, by: voiceCallerOf(request) });
      return reply.code(201).send(success({ voice_id: voice.id, status: voice.status }));
    },
  );

  app.register(async (scope: HttpApp) => {
    acceptForms(scope, { maxFiles: MAX_FILES });
    scope.post<{ Body: FormFields }>(
      '/voices',
      {
        config: { access: 'writer', receiveBody: (request, reply) => receive(request, reply, VOICE_FIELDS) },
        // `readVoiceForm` parses and validates the strings of the form.
        validatorCompiler: () => () => true,
        schema: {
          tags: TAGS,
          operationId: 'cloneVoice',
          summary: 'Clone a voice from audio samples',
          description: CLONE_DESCRIPTION,
          consumes: ['multipart/form-data'],
          body: VoiceFormSchema,
          response: {
            201: successOf(CreatedVoiceSchema, 'The voice was created and is being processed.'),
            ...REFUSALS,
          },
        },
      },
      async (request, reply) => {
        const form = readVoiceForm(request.body);
        const voice = await withSamples(request, (samples) =>
          voices.create({ ...form, samples, by: voiceCallerOf(request) }),
        );
        return reply.code(201).send(success({ voice_id: voice.id, status: voice.status }));
      },
    );

    scope.post<{ Body: FormFields; Params: { id: string } }>(
      '/voices/professional/:id/samples',
      {
        config: {
          access: 'writer',
          receiveBody: (request, reply) => receive(request, reply, SAMPLES_FIELDS, { minFiles: 0 }),
        },
        // `readSamplesForm` parses and validates the strings of the form.
        validatorCompiler: () => () => true,
        schema: {
          tags: TAGS,
          operationId: 'addVoiceSamples',
          summary: 'Add samples to a professional voice',
          description: SAMPLES_DESCRIPTION,
          consumes: ['multipart/form-data'],
          params: IdParams,
          body: SamplesFormSchema,
          response: { 200: successOf(AddedSamplesSchema, 'The samples were added.'), ...REFUSALS },
        },
      },
      async (request) => {
        const { isLast } = readSamplesForm(request.body);
        const addition = { voiceId: request.params.id, isLast, by: voiceCallerOf(request) };
        const { voice, sampleMs } = await withSamples(request, (samples) =>
          voices.addSamples({ ...addition, samples }),
        );
        return success({ voice_id: voice.id, status: voice.status, sample_seconds: Math.round(sampleMs / 100) / 10 });
      },
    );
  });

  /** Receives the form and sets `body` to its fields. Deletes its files when the connection closes. */
  async function receive(
    request: FastifyRequest,
    reply: FastifyReply,
    fields: Readonly<Record<string, 'once'>>,
    { minFiles = 1 }: { minFiles?: number } = {},
  ): Promise<void> {
    const signal = clientSignal(reply, closing);
    const upload = await voices.beginUpload({ userId: callerOf(request).userId });
    const deleteFiles = () => {
      upload.end().catch((error: unknown) => logger.warn({ err: error }, 'deleting uploaded voice samples failed'));
    };
    if (reply.raw.closed) deleteFiles();
    else reply.raw.once('close', deleteFiles);
    const form = await receiveForm(request, {
      fileField: 'files',
      fileFieldAlias: 'files[]',
      minFiles,
      maxFiles: MAX_FILES,
      fields,
      pathOf: (index) => join(upload.folder, `upload-${index}`),
      maxFileBytes: MAX_FILE_BYTES,
      maxBytes: MAX_REQUEST_BYTES,
      signal,
    });
    received.set(request, { upload, files: form.files, signal });
    request.body = form.fields;
  }

  function withSamples<Result>(
    request: FastifyRequest,
    work: (samples: GivenSamples) => Promise<Result>,
  ): Promise<Result> {
    const { upload, files, signal: whileConnected } = received.get(request)!;
    const ended = new AbortController();
    const signal = AbortSignal.any([whileConnected, ended.signal]);
    return whileAuthorized(context, { principal: principalOf(request), ended }, () =>
      work({ files, folder: upload.folder, signal }),
    );
  }
}

function voiceCallerOf(request: FastifyRequest): VoiceCaller {
  const { workspaceId, userId, apiKeyId } = principalOf(request);
  return { workspaceId, userId, apiKeyId, requestId: request.id, address: addressOf(request) };
}

const CLONE_DESCRIPTION = [
  'Creates a voice from 5 seconds to 10 minutes of speech by one speaker; a minute without noise works best. Its status',
  'is `processing`, then `ready` or `failed`: poll GET /voices/{id}, or subscribe to voice.ready and voice.failed. If no',
  'installed engine clones voices, the voice is the closest built-in one, adapted to the speaker and marked',
  '`approximate`. An invalid audio file rejects the whole request. A workspace can have 100 voices.',
].join(' ');

const SAMPLES_DESCRIPTION = [
  'Adds samples, up to 3 hours of speech over all requests. Duplicate audio is ignored. Processing starts when you send',
  '`complete=true` and the voice has at least a minute of speech, or when it reaches 30 minutes. With less than a minute,',
  '`complete=true` is rejected with VOICE_SAMPLE_UNUSABLE and the samples of that request are discarded. A request with',
  '`complete=true` needs no files. A voice rejects samples while it is processed (VOICE_NOT_READY) and once it is ready',
  '(VOICE_NOT_EDITABLE). You can add samples to a failed voice and complete it again.',
].join(' ');

const ListResponse = Type.Object(
  {
    success: Type.Literal(true),
    message: Type.String({ examples: ['1 quality voices.'] }),
    data: Type.Array(ListedVoiceSchema),
    meta: Type.Object({ model: Type.Enum(['quality', 'fast']), pagination: PaginationSchema }),
  },
  { description: 'The voices.' },
);
