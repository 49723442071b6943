import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { SynthesisStream } from '../../actors/tts/tts-desk.ts';
import { type SpeakingStyle, USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import { SpeakBody, SpokenLines } from '../schemas/tts.ts';
import { speechAudio } from '../speech-audio.ts';
import { speechFormatFor } from '../speech-format.ts';
import { speechLines } from '../speech-lines.ts';
import { respondWithSpeech } from '../speech-response.ts';

const DEFAULT_SAMPLE_RATE_HZ = 24_000;

export function ttsRoutes(app: HttpApp, context: HttpContext): void {
  const speak = (request: FastifyRequest<{ Body: Static<typeof SpeakBody> }>, reply: FastifyReply) => {
    const { body } = request;
    const requested = body.audio_config?.audio_encoding ?? body.audio_encoding;
    const { encoding, mediaType } = speechFormatFor(request.headers.accept, requested);
    const sampleRateHz = body.audio_config?.sample_rate_hertz ?? body.sample_rate ?? DEFAULT_SAMPLE_RATE_HZ;
    const format = { encoding: encoding === 'WAV' ? 'LINEAR16' : encoding, sampleRateHz } as const;
    const withWordTimes = (body.timestamp_type ?? 'WORD') === 'WORD';
    return respondWithSpeech(
      context,
      { request, reply },
      {
        what: { text: body.text, voiceId: body.voice_id ?? null, style: styleOf(body), format },
        ...(mediaType === null
          ? {
              contentType: 'application/x-ndjson; charset=utf-8',
              chunksOf: (spoken: SynthesisStream) => speechLines(spoken, { encoding, sampleRateHz, withWordTimes }),
            }
          : {
              contentType: isHeaderless(encoding) ? `${mediaType};rate=${sampleRateHz};channels=1` : mediaType,
              chunksOf: (spoken: SynthesisStream) => speechAudio(spoken, { isWav: encoding === 'WAV', sampleRateHz }),
            }),
      },
    );
  };

  const config = { access: 'writer', billed: true, streams: 'always' } as const;
  app.post('/tts-stream', { config, schema: speakSchema('streamSpeech') }, speak);
  app.post('/v1/stream', { config, schema: speakSchema('streamSpeechByAlias') }, speak);
  app.post('/tts-synthesize', { config, schema: speakSchema('synthesizeSpeech') }, speak);

  app.get(
    '/tts/languages',
    {
      config: { access: 'member' },
      schema: {
        tags: ['speech'],
        operationId: 'listSpeechLanguages',
        summary: 'List text-to-speech languages',
        description: 'Returns the languages that voices exist for, in no particular order.',
        response: { 200: LanguagesResponse, ...REFUSALS },
      },
    },
    async () => {
      const data = context.speech.languages().map(({ language, name }) => ({ language_id: language, name }));
      return { success: true, message: `${data.length} text-to-speech languages.`, data };
    },
  );
}

/** Encodings without a header, so the media type needs the sample rate. */
const isHeaderless = (encoding: string) => encoding === 'LINEAR16' || encoding === 'MULAW' || encoding === 'ALAW';

function styleOf({ wpm, speed, stability, similarity, enhance }: Static<typeof SpeakBody>): SpeakingStyle {
  return {
    wordsPerMinute: wpm ?? USUAL_STYLE.wordsPerMinute,
    speed: speed ?? USUAL_STYLE.speed,
    stability: stability ?? USUAL_STYLE.stability,
    similarity: similarity ?? USUAL_STYLE.similarity,
    enhance: enhance ?? USUAL_STYLE.enhance,
  };
}

function speakSchema(operationId: keyof typeof SUMMARIES) {
  return {
    tags: ['speech'],
    operationId,
    summary: SUMMARIES[operationId],
    description:
      'Streams audio while it is synthesised, no faster than you read it, and word timestamps at the end: as lines of JSON, or as the audio alone if the `Accept` header prefers an audio type, such as `audio/mpeg`. The text is charged before synthesis and refunded if synthesis fails midway. If the server crashes midway, the part that was not delivered is refunded. It is not refunded if you disconnect early or your credentials are revoked. Each user can run 5 requests at a time; further ones are rejected with TTS_CONCURRENCY_LIMIT.',
    body: SpeakBody,
    response: { 200: SpokenLines, ...REFUSALS },
  };
}

const SUMMARIES = {
  streamSpeech: 'Stream speech from text',
  streamSpeechByAlias: 'Stream speech from text (alias of POST /tts-stream)',
  synthesizeSpeech: 'Synthesise speech with word timestamps',
} as const;

const LanguagesResponse = responseOf(
  Type.Object(
    {
      success: Type.Literal(true),
      message: Type.String(),
      data: Type.Array(
        Type.Object({ language_id: Type.String({ description: 'ISO 639 code.' }), name: Type.String() }),
      ),
    },
    {
      description: 'The languages.',
      examples: [
        { success: true, message: '1 text-to-speech languages.', data: [{ language_id: 'hi', name: 'Hindi' }] },
      ],
    },
  ),
);
