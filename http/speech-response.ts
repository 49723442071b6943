import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { SpeakTextRequest, SynthesisStream } from '../actors/tts/tts-desk.ts';
import { principalOf } from './auth.ts';
import { billingHeaders } from './billing-headers.ts';
import type { HttpContext } from './context.ts';
import { abortWithClient } from './credential-watch.ts';
import { withStallTimeout } from './stall-timeout.ts';

export interface SpeechResponse {
  what: Pick<SpeakTextRequest, 'text' | 'voiceId' | 'style' | 'format'>;
  contentType: string;
  chunksOf(spoken: SynthesisStream): AsyncGenerator<string | Uint8Array, void>;
}

/** Charges for a text and streams its speech. Holds one of the user's slots until the response ends. */
export async function respondWithSpeech(
  context: HttpContext,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  { what, contentType, chunksOf }: SpeechResponse,
): Promise<FastifyReply> {
  const principal = principalOf(request);
  const { workspaceId, userId, apiKeyId } = principal;
  const slot = await context.limits.acquireSlot({ userId, kind: 'tts' });
  const ended = new AbortController();
  ended.signal.addEventListener('abort', () => void slot.release(), { once: true });
  abortWithClient(context, { principal, reply, ended });
  let spoken: SynthesisStream;
  try {
    spoken = await context.speech.speak({ workspaceId, userId, apiKeyId, ...what }, ended.signal);
  } catch (error) {
    ended.abort();
    if (reply.raw.destroyed) return reply.hijack();
    throw error;
  }
  const chunks = withStallTimeout(chunksOf(spoken), {
    withinMs: context.stallTimeoutMs,
    onStalled: () => reply.raw.destroy(),
  });
  return reply
    .headers({
      'content-type': contentType,
      'cache-control': 'no-cache, no-transform',
      // Stops nginx from buffering the audio.
      'x-accel-buffering': 'no',
      ...billingHeaders(spoken.charge, principal),
    })
    .send(Readable.from(chunks));
}
