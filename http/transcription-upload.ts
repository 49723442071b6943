import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PendingTranscription, PublicTranscript } from '../actors/stt/transcriber.ts';
import { TandemError } from '../machines/errors.ts';
import { isObject } from '../runtime/is-object.ts';
import { AUDIO_EXPECTED, isAudioBody, receiveAudioBody } from './audio-body.ts';
import { callerOf, principalOf } from './auth.ts';
import { billingHeaders } from './billing-headers.ts';
import { clientSignal } from './client-signal.ts';
import type { HttpContext } from './context.ts';
import { whileAuthorized } from './credential-watch.ts';
import { type FieldKinds, type FormFields, toFormFields } from './form-fields.ts';
import { receiveForm, type UploadedFile } from './multipart.ts';
import type { TranscriptionChoices } from './schemas/stt.ts';
import { validationFailed } from './validation.ts';

export interface TranscriptionUploadOptions {
  fields: FieldKinds;
  /** Accepts also audio, with options in the query, and JSON with a `url`. Default: forms only. */
  acceptsAudio?: boolean;
}

type Upload = Pick<UploadedFile, 'name' | 'mediaType'>;

interface Begun {
  pending: PendingTranscription;
  /** Cancels the transcription. */
  ended: AbortController;
}

export interface TranscriptionUploads {
  /**
   * Reserves a slot, receives the audio and sets `body` to the options as form fields. Releases the slot and the file
   * when the connection is done.
   */
  receiveBody(request: FastifyRequest, reply: FastifyReply): Promise<void>;
  /** Transcribes the request's upload and sets the billing headers. */
  transcribe(request: FastifyRequest, reply: FastifyReply, choices: TranscriptionChoices): Promise<PublicTranscript>;
}

const MAX_FILE_BYTES = 25 * 2 ** 20;

export function createTranscriptionUploads(
  context: HttpContext,
  { fields, acceptsAudio = false }: TranscriptionUploadOptions,
): TranscriptionUploads {
  const { transcriber, closing, logger } = context;
  const uploads = new WeakMap<FastifyRequest, Begun & { file: Upload }>();

  return {
    async receiveBody(request, reply) {
      const begun = await begin(request, reply);
      const { file, options } = await receive(request, begun.pending);
      uploads.set(request, { ...begun, file });
      request.body = options;
    },

    async transcribe(request, reply, choices) {
      const { pending, ended, file } = uploads.get(request)!;
      const principal = principalOf(request);
      const { workspaceId, userId, apiKeyId, plan } = principal;
      const sender = { workspaceId, userId, apiKeyId, plan, fileName: file.name, mediaType: file.mediaType };
      const { transcript, charge } = await whileAuthorized(context, { principal, ended }, () =>
        pending.transcribe({ ...choices, ...sender }),
      );
      if (charge !== null) reply.headers(billingHeaders(charge, principal));
      return transcript;
    },
  };

  async function receive(
    request: FastifyRequest,
    pending: PendingTranscription,
  ): Promise<{ file: Upload; options: FormFields }> {
    const { uploadPath: path, signal } = pending;
    if (acceptsAudio && isAudioBody(request)) {
      const options = toFormFields(request.query as object, fields);
      return { file: await receiveAudioBody(request, { path, maxFileBytes: MAX_FILE_BYTES, signal }), options };
    }
    if (acceptsAudio && !request.isMultipart()) return await fetchAudio(request.body, pending);
    const limits = { maxFileBytes: MAX_FILE_BYTES, signal };
    const form = await receiveForm(request, { fileField: 'file', fields, pathOf: () => path, ...limits });
    return { file: form.files[0]!, options: form.fields };
  }

  async function fetchAudio(
    body: unknown,
    pending: PendingTranscription,
  ): Promise<{ file: Upload; options: FormFields }> {
    if (body === undefined) throw new TandemError('UNSUPPORTED_MEDIA_TYPE', AUDIO_EXPECTED);
    if (!isObject(body)) throw validationFailed([{ path: 'body', message: 'must be a JSON object' }]);
    // The url stays among the options, because repetitions of a request are recognised by its body.
    const options = toFormFields(body, { ...fields, url: 'once' });
    const { url } = options;
    if (typeof url !== 'string' || url === '') throw validationFailed([{ path: 'url', message: 'is required' }]);
    const { fileName: name, mediaType } = await pending.download(url, { maxBytes: MAX_FILE_BYTES });
    return { file: { name, mediaType }, options: withJsonLists(options) };
  }

  async function begin(request: FastifyRequest, reply: FastifyReply): Promise<Begun> {
    const ended = new AbortController();
    const signal = clientSignal(reply, closing, 'STT_CLIENT_CANCELLED');
    const { userId } = callerOf(request);
    // Log here, because no response is sent.
    const logCancellation = () => logger.info({ requestId: request.id, ...codeOf(signal.reason) }, 'upload cancelled');
    signal.addEventListener('abort', logCancellation, { once: true });
    const either = AbortSignal.any([signal, ended.signal]);
    const pending = await transcriber.begin({ userId, requestId: request.id, signal: either });
    const end = () => {
      pending.end().catch((error: unknown) => logger.error({ err: error }, 'transcription cleanup failed'));
    };
    if (reply.raw.closed) end();
    else reply.raw.once('close', end);
    return { pending, ended };
  }
}

/** The items of an array may contain commas, unlike the values of a repeated field. */
function withJsonLists(options: FormFields): FormFields {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name, Array.isArray(value) ? JSON.stringify(value) : value]),
  );
}

function codeOf({ code, status }: TandemError) {
  return { code, status };
}
