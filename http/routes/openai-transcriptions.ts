import { TandemError } from '../../machines/errors.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import type { FormFields } from '../form-fields.ts';
import { acceptForms } from '../multipart.ts';
import { REFUSALS } from '../schemas/envelope.ts';
import {
  OPENAI_TRANSCRIPTION_FIELDS,
  OPENAI_TRANSCRIPTION_MODELS,
  OpenaiTranscriptionFormSchema,
  OpenaiTranscriptionResponse,
  parseOpenaiTranscriptionForm,
  presentOpenaiTranscript,
} from '../schemas/openai-transcription.ts';
import { createTranscriptionUploads } from '../transcription-upload.ts';

/** Serves `client.audio.transcriptions` of OpenAI clients. */
export function openaiTranscriptionRoutes(app: HttpApp, context: HttpContext): void {
  const { transcriber } = context;
  const uploads = createTranscriptionUploads(context, { fields: OPENAI_TRANSCRIPTION_FIELDS });

  app.register(async (scope: HttpApp) => {
    acceptForms(scope);
    scope.post<{ Body: FormFields }>(
      '/v1/audio/transcriptions',
      {
        config: { access: 'writer', receiveBody: uploads.receiveBody, billed: true },
        // `parseOpenaiTranscriptionForm` parses and validates the strings of the form.
        validatorCompiler: () => () => true,
        schema: {
          tags: ['speech-to-text'],
          operationId: 'createTranscription',
          summary: 'Transcribe an audio file (OpenAI clients)',
          description:
            "Transcribes one file as POST /stt does, with the same price and limits, in the format of OpenAI's API. A rejected, cancelled or failed request is free. Translation into English is not available.",
          consumes: ['multipart/form-data'],
          body: OpenaiTranscriptionFormSchema,
          response: { 200: OpenaiTranscriptionResponse, ...REFUSALS },
        },
      },
      async (request, reply) => {
        const languages = transcriber.languages();
        const form = parseOpenaiTranscriptionForm(request.body, languages);
        await requireModel(form.model);
        const transcript = await uploads.transcribe(request, reply, form.choices);
        const { type, body } = presentOpenaiTranscript(transcript, { form, languages });
        return reply.type(type).send(body);
      },
    );
  });

  async function requireModel(model: string): Promise<void> {
    if (OPENAI_TRANSCRIPTION_MODELS.includes(model) || (await transcriber.models()).includes(model)) return;
    throw new TandemError(
      'MODEL_NOT_FOUND',
      'No speech-to-text model has this id. Send whisper-1, or an id of type stt from GET /v1/models.',
    );
  }
}
