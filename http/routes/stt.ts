import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { PendingTranscription } from '../../actors/stt/transcriber.ts';
import type { TandemError } from '../../machines/errors.ts';
import { callerOf, principalOf } from '../auth.ts';
import { BILLING_HEADERS, billingHeaders } from '../billing-headers.ts';
import { clientSignal } from '../client-signal.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { acceptForms, receiveForm, type UploadedFile } from '../multipart.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import {
  type FormFields,
  parseTranscriptionForm,
  TRANSCRIPTION_FIELDS,
  TranscriptionFormSchema,
  TranscriptSchema,
} from '../schemas/stt.ts';

const TAGS = ['speech-to-text'];
const MAX_FILE_BYTES = 25 * 2 ** 20;

/** Set by `receiveUpload` before the handler runs. */
interface Upload {
  pending: PendingTranscription;
  file: UploadedFile;
}

export function sttRoutes(app: HttpApp, context: HttpContext): void {
  const { transcriber, closing, logger } = context;
  const uploads = new WeakMap<FastifyRequest, Upload>();

  app.get(
    '/stt/languages',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listTranscriptionLanguages',
        summary: 'List speech-to-text languages',
        description:
          'Returns the languages you can request. Which of them can be transcribed depends on the installed engines and models.',
        response: { 200: responseOf(LanguagesSchema), ...REFUSALS },
      },
    },
    () => ({ success: true, message: 'Speech-to-text languages.', data: transcriber.languages() }),
  );

  app.register(async (scope: HttpApp) => {
    acceptForms(scope as unknown as FastifyInstance);
    for (const [url, operationId] of [
      ['/stt', 'transcribe'],
      ['/v1/transcribe', 'transcribeByAlias'],
    ] as const) {
      scope.post<{ Body: FormFields }>(
        url,
        {
          config: { access: 'writer', receiveBody: receiveUpload },
          // `parseTranscriptionForm` parses and validates the strings of the form.
          validatorCompiler: () => () => true,
          schema: {
            tags: TAGS,
            operationId,
            summary: url === '/stt' ? 'Transcribe an audio file' : 'Transcribe an audio file (alias of POST /stt)',
            description: DESCRIPTION,
            consumes: ['multipart/form-data'],
            body: TranscriptionFormSchema as unknown as ReturnType<typeof Type.Unsafe<FormFields>>,
            response: { 200: responseOf({ ...TranscriptSchema, headers: BILLING_HEADERS }), ...REFUSALS },
          },
        },
        async (request, reply) => {
          const { pending, file } = uploads.get(request)!;
          const form = parseTranscriptionForm(request.body, transcriber.languages());
          const { workspaceId, userId, apiKeyId, plan } = principalOf(request);
          const sender = { workspaceId, userId, apiKeyId, plan, fileName: file.name, mediaType: file.mediaType };
          const { transcript, charge } = await pending.transcribe({ ...form, ...sender });
          if (charge !== null) reply.headers(billingHeaders(charge, principalOf(request)));
          return { success: true, request_id: request.id, ...transcript };
        },
      );
    }
  });

  /** Reserves a slot, then receives the form. The slot and the file are released once the connection is done. */
  async function receiveUpload(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const signal = clientSignal(reply, closing, 'STT_CLIENT_CANCELLED');
    const { userId } = callerOf(request);
    // Logged here, because no response is sent.
    const logCancellation = () => logger.info({ requestId: request.id, ...codeOf(signal.reason) }, 'upload cancelled');
    signal.addEventListener('abort', logCancellation, { once: true });
    const pending = await transcriber.begin({ userId, requestId: request.id, signal });
    const end = () => {
      pending.end().catch((error: unknown) => logger.error({ err: error }, 'transcription cleanup failed'));
    };
    if (reply.raw.closed) end();
    else reply.raw.once('close', end);
    const { files, fields } = await receiveForm(request, {
      fileField: 'file',
      fields: TRANSCRIPTION_FIELDS,
      pathOf: () => pending.uploadPath,
      maxFileBytes: MAX_FILE_BYTES,
      signal: pending.signal,
    });
    uploads.set(request, { pending, file: files[0]! });
    request.body = fields;
  }
}

function codeOf({ code, status }: TandemError) {
  return { code, status };
}

const DESCRIPTION = [
  'Transcribes one file. The charge depends on the length of the audio and is made once there is a transcript: a rejected,',
  'cancelled or failed request is free, and so is audio dropped because of noise. Each user can run 8 transcriptions at a',
  'time, live sessions included; further requests are rejected with STT_CONCURRENCY_LIMIT before their body is read. Long',
  'audio is split into chunks that are transcribed in parallel. A request that takes over 600 seconds fails with',
  'STT_TIMEOUT. Close the connection to cancel.',
].join(' ');

const LanguagesSchema = Type.Object(
  {
    success: Type.Literal(true),
    message: Type.String({ examples: ['Speech-to-text languages.'] }),
    data: Type.Array(
      Type.Object({
        language_id: Type.String({ description: 'ISO 639-1 code, or `auto`.', examples: ['en'] }),
        name: Type.String({ description: 'Name in English.', examples: ['English'] }),
        auto: Type.Boolean({ description: 'True for the entry that detects the language.', examples: [false] }),
        rest: Type.Boolean({ description: 'True if POST /stt accepts it.', examples: [true] }),
        websocket: Type.Boolean({ description: 'True if live sessions accept it.', examples: [true] }),
      }),
    ),
  },
  { description: 'The languages.' },
);
