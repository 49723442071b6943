import type { SpokenText } from '../../actors/tts/tts-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { wavHeader } from '../../media/wav.ts';
import { USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS } from '../schemas/envelope.ts';
import {
  OPENAI_SPEECH_FORMATS,
  OPENAI_SPEECH_MODELS,
  OpenaiSpeechBody,
  OpenaiSpeechResponse,
} from '../schemas/openai-speech.ts';
import { respondWithSpeech } from '../speech-response.ts';

const SAMPLE_RATE_HZ = 24_000;

/** Serves `client.audio.speech` of OpenAI clients. */
export function openaiSpeechRoutes(app: HttpApp, context: HttpContext): void {
  app.post(
    '/v1/audio/speech',
    {
      config: { access: 'writer' },
      schema: {
        tags: ['speech'],
        operationId: 'createSpeech',
        summary: 'Synthesise speech (OpenAI clients)',
        description:
          "Streams the audio itself, in the format of OpenAI's API. Price, limits and refunds are those of POST /tts-stream, which also returns word timestamps. A request that fails is free. A client that leaves after the first audio pays for the whole text.",
        body: OpenaiSpeechBody,
        response: { 200: OpenaiSpeechResponse, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { input: text, model = 'tts-1', voice = null, response_format: name = 'mp3', speed = 1 } = request.body;
      if (!OPENAI_SPEECH_MODELS.includes(model)) {
        throw new TandemError(
          'MODEL_NOT_FOUND',
          'No text-to-speech model has this id. Send tts-1, or an id of type tts from GET /v1/models.',
        );
      }
      const { encoding, mediaType } = OPENAI_SPEECH_FORMATS[name];
      const voiceId = typeof voice === 'object' ? (voice?.id ?? null) : voice;
      const what = {
        ...{ text, voiceId, style: { ...USUAL_STYLE, speed } },
        format: { encoding, sampleRateHz: SAMPLE_RATE_HZ },
      };
      const chunksOf = (spoken: SpokenText) => audioChunks(spoken, { isWav: name === 'wav' });
      return await respondWithSpeech(context, { request, reply }, { what, contentType: mediaType, chunksOf });
    },
  );
}

/** A failure midway breaks the connection off: clients must not take the audio so far for all of it. */
async function* audioChunks({ parts }: SpokenText, { isWav }: { isWav: boolean }): AsyncGenerator<Uint8Array, void> {
  // The total length is unknown, so the header says to read to the end.
  if (isWav) yield wavHeader({ channels: 1, sampleRateHz: SAMPLE_RATE_HZ }, Number.POSITIVE_INFINITY);
  for await (const { audio } of parts) if (audio.byteLength > 0) yield audio;
}
