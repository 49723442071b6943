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

/** What `receiveUpload` has made of the body by the time the handler runs. */
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
        summary: 'Languages of transcription, and which of them live sessions take',
        description: 'Which of them are understood depends on the engines and models that are installed.',
        response: { 200: responseOf(LanguagesSchema), ...REFUSALS },
      },
    },
    () => ({ success: true, message: 'Languages of transcription.', data: transcriber.languages() }),
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
          // `parseTranscriptionForm` reads what is text in a form.
          validatorCompiler: () => () => true,
          schema: {
            tags: TAGS,
            operationId,
            summary: url === '/stt' ? 'Transcribe a file' : 'Transcribe a file: the same as POST /stt',
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
          if (charge !== null) reply.headers(billingHeaders(charge));
          return { success: true, request_id: request.id, ...transcript };
        },
      );
    }
  });

  /** Takes a slot and then the form. Whatever comes of it is over when the response is out, or its client gone. */
  async function receiveUpload(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const signal = clientSignal(reply, closing, 'STT_CLIENT_CANCELLED');
    const { userId } = callerOf(request);
    // No response goes out, so that nothing else is logged.
    const logCancellation = () => logger.info({ requestId: request.id, ...codeOf(signal.reason) }, 'upload cancelled');
    signal.addEventListener('abort', logCancellation, { once: true });
    const pending = await transcriber.begin({ userId, requestId: request.id, signal });
    const end = () => {
      pending.end().catch((error: unknown) => logger.error({ err: error }, 'a transcription did not end cleanly'));
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
  'The file is charged by its length once there is text; what is refused, cancelled by closing the connection or not',
  'understood costs nothing. A user has 8 transcriptions at a time, live sessions included, and one more is refused',
  'before its body is read. Audio that is cut into several chunks is recognised side by side, and then language_source',
  'is long_audio_chunked. Within 600 seconds of its arrival a request is answered, or refused with STT_TIMEOUT.',
].join(' ');

const LanguagesSchema = Type.Object(
  {
    success: Type.Literal(true),
    message: Type.String({ examples: ['Languages of transcription.'] }),
    data: Type.Array(
      Type.Object({
        language_id: Type.String({ description: 'ISO 639-1, or auto.', examples: ['en'] }),
        name: Type.String({ examples: ['English'] }),
        auto: Type.Boolean({ description: 'The entry that stands for whatever is spoken.', examples: [false] }),
        rest: Type.Boolean({ description: 'Whether files may be in it.', examples: [true] }),
        websocket: Type.Boolean({ description: 'Whether live sessions take it.', examples: [true] }),
      }),
    ),
  },
  { description: 'The catalogue.' },
);
