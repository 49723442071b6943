import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { SpokenText } from '../../actors/tts/tts-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { type BuiltInVoice, findVoice, speechLanguages } from '../../speech/synthesis/voices.ts';
import { principalOf } from '../auth.ts';
import { BILLING_HEADERS, billingHeaders } from '../billing-headers.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { endWithClient } from '../credential-watch.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import { SpeakBody, SynthesizeBody, spokenLines } from '../schemas/tts.ts';
import { spokenAsLines } from '../spoken-lines.ts';

/** Platform specification, Voice: where neither the request nor the voice has a pace. */
const DEFAULT_WORDS_PER_MINUTE = 137;
const DEFAULT_SAMPLE_RATE_HZ = 24_000;

export function ttsRoutes(app: HttpApp, context: HttpContext): void {
  const speak = (request: FastifyRequest<{ Body: Static<typeof SpeakBody> }>, reply: FastifyReply) =>
    answerSpoken({ request, reply }, request.body);
  const synthesize = (request: FastifyRequest<{ Body: Static<typeof SynthesizeBody> }>, reply: FastifyReply) =>
    answerSpoken({ request, reply }, request.body);

  app.post('/tts-stream', { config: { access: 'writer' }, schema: speakSchema('streamSpeech') }, speak);
  app.post('/v1/stream', { config: { access: 'writer' }, schema: speakSchema('streamSpeechByAlias') }, speak);
  app.post(
    '/tts-synthesize',
    {
      config: { access: 'writer' },
      schema: {
        tags: ['speech'],
        operationId: 'synthesizeSpeech',
        summary: 'Text to speech, with encoding, sample rate and word times',
        description:
          '`sample_rate` and `audio_encoding` are older names of what is in `audio_config`, which wins over them.',
        body: SynthesizeBody,
        response: { 200: spokenLines(BILLING_HEADERS), ...REFUSALS },
      },
    },
    synthesize,
  );

  app.get(
    '/tts/languages',
    {
      config: { access: 'member' },
      schema: {
        tags: ['speech'],
        operationId: 'listSpeechLanguages',
        summary: 'Languages there are voices for',
        response: { 200: LanguagesResponse, ...REFUSALS },
      },
    },
    async () => {
      const data = speechLanguages().map(({ language, name }) => ({ language_id: language, name }));
      return { success: true, message: `${data.length} languages can be spoken.`, data };
    },
  );

  async function answerSpoken(
    { request, reply }: { request: FastifyRequest; reply: FastifyReply },
    body: Static<typeof SpeakBody> & Static<typeof SynthesizeBody>,
  ): Promise<FastifyReply> {
    const principal = principalOf(request);
    const voice = voiceOf(body.voice_id ?? 'en-us');
    const encoding = body.audio_config?.audio_encoding ?? body.audio_encoding ?? 'LINEAR16';
    const sampleRateHz = body.audio_config?.sample_rate_hertz ?? body.sample_rate ?? DEFAULT_SAMPLE_RATE_HZ;
    const slot = await context.limits.acquireSlot({ userId: principal.userId, kind: 'tts' });
    const ended = new AbortController();
    ended.signal.addEventListener('abort', () => void slot.release(), { once: true });
    endWithClient(context, { principal, reply, ended });
    let spoken: SpokenText;
    try {
      const format = { encoding: encoding === 'WAV' ? 'LINEAR16' : encoding, sampleRateHz } as const;
      const wordsPerMinute = (body.wpm ?? DEFAULT_WORDS_PER_MINUTE) * (body.speed ?? 1);
      const { workspaceId, userId, apiKeyId } = principal;
      const text = { text: body.text, voice: voice.engineName, wordsPerMinute, format };
      spoken = await context.speech.speak({ workspaceId, userId, apiKeyId, ...text }, ended.signal);
    } catch (error) {
      ended.abort();
      if (reply.raw.destroyed) return reply.hijack();
      throw error;
    }
    const lines = spokenAsLines(spoken, {
      text: body.text,
      encoding,
      sampleRateHz,
      voiceId: voice.id,
      withWordTimes: (body.timestamp_type ?? 'WORD') === 'WORD',
    });
    return reply
      .headers({
        'content-type': 'application/x-ndjson; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        // nginx would hold lines back.
        'x-accel-buffering': 'no',
        ...billingHeaders(spoken.charge),
      })
      .send(Readable.from(lines));
  }
}

function speakSchema(operationId: string) {
  return {
    tags: ['speech'],
    operationId,
    summary: 'Text to speech',
    description: 'Audio is LINEAR16, mono, 24000 Hz.',
    body: SpeakBody,
    response: { 200: spokenLines(BILLING_HEADERS), ...REFUSALS },
  };
}

function voiceOf(voiceId: string): BuiltInVoice {
  const voice = findVoice(voiceId);
  if (voice !== null) return voice;
  throw new TandemError('VOICE_NOT_FOUND', 'There is no such voice. en-us, hi and the like name built-in ones.');
}

const LanguagesResponse = responseOf(
  Type.Object(
    {
      success: Type.Literal(true),
      message: Type.String(),
      data: Type.Array(Type.Object({ language_id: Type.String(), name: Type.String() })),
    },
    {
      description: 'In no order.',
      examples: [
        { success: true, message: '1 languages can be spoken.', data: [{ language_id: 'hi', name: 'Hindi' }] },
      ],
    },
  ),
);
