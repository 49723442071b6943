import type { SynthesisStream } from '../../actors/tts/tts-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS } from '../schemas/envelope.ts';
import {
  OPENAI_SPEECH_FORMATS,
  OPENAI_SPEECH_MODELS,
  OpenaiSpeechBody,
  OpenaiSpeechResponse,
} from '../schemas/openai-speech.ts';
import { speechAudio } from '../speech-audio.ts';
import { respondWithSpeech } from '../speech-response.ts';

const SAMPLE_RATE_HZ = 24_000;

/** Serves `client.audio.speech` of OpenAI clients. */
export function openaiSpeechRoutes(app: HttpApp, context: HttpContext): void {
  app.post(
    '/v1/audio/speech',
    {
      config: { access: 'writer', billed: true, streams: 'always' },
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
      const chunksOf = (spoken: SynthesisStream) =>
        speechAudio(spoken, { isWav: name === 'wav', sampleRateHz: SAMPLE_RATE_HZ });
      return await respondWithSpeech(context, { request, reply }, { what, contentType: mediaType, chunksOf });
    },
  );
}
