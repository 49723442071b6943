import { Type } from 'typebox';
import { acceptAudioBodies } from '../audio-body.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import type { FormFields } from '../form-fields.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import {
  parseTranscriptionForm,
  TRANSCRIPTION_FIELDS,
  TranscriptionFormSchema,
  TranscriptionQuerySchema,
  TranscriptionUrlSchema,
  TranscriptSchema,
} from '../schemas/stt.ts';
import { createTranscriptionUploads } from '../transcription-upload.ts';

const TAGS = ['speech-to-text'];

export function sttRoutes(app: HttpApp, context: HttpContext): void {
  const { transcriber } = context;
  const uploads = createTranscriptionUploads(context, { fields: TRANSCRIPTION_FIELDS, acceptsAudio: true });

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
    acceptAudioBodies(scope);
    for (const [url, operationId] of [
      ['/stt', 'transcribe'],
      ['/v1/transcribe', 'transcribeByAlias'],
    ] as const) {
      scope.post<{ Body: FormFields }>(
        url,
        {
          config: { access: 'writer', billed: true, receiveBody: uploads.receiveBody },
          // `parseTranscriptionForm` parses and validates the strings of the form.
          validatorCompiler: () => () => true,
          schema: {
            tags: TAGS,
            operationId,
            summary: url === '/stt' ? 'Transcribe an audio file' : 'Transcribe an audio file (alias of POST /stt)',
            description: DESCRIPTION,
            querystring: TranscriptionQuerySchema,
            body: BODIES,
            response: { 200: responseOf(TranscriptSchema), ...REFUSALS },
          },
        },
        async (request, reply) => {
          const choices = parseTranscriptionForm(request.body, transcriber.languages());
          const transcript = await uploads.transcribe(request, reply, choices);
          return { success: true, request_id: request.id, ...transcript };
        },
      );
    }
  });
}

const BODIES = {
  content: {
    'multipart/form-data': { schema: TranscriptionFormSchema },
    'application/json': { schema: TranscriptionUrlSchema },
    'audio/*': { schema: Type.String({ format: 'binary', description: 'The audio file, up to 25 MB.' }) },
  },
};

const DESCRIPTION = [
  'Transcribes one file: of a form, of a JSON body with its `url`, or the body itself, as audio/*, video/* or',
  'application/octet-stream with the options as query parameters. The charge depends on the length of the audio and is made once there is a transcript: a rejected,',
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
