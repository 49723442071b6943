import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { raceAbort } from '../runtime/waiting.ts';
import { addJsonParser } from './json-body.ts';
import { acceptForms, discardRest, tooLarge, type UploadedFile } from './multipart.ts';
import { digestUpload } from './upload-digests.ts';

export const AUDIO_EXPECTED = 'Send multipart/form-data, the audio itself as audio/*, or application/json with a url.';

/** Media types of audio files, including containers for video. */
const AUDIO_TYPES = /^(audio|video)\/|^application\/(ogg|octet-stream)\b/i;

/** Makes this scope accept forms, JSON, and audio for `receiveAudioBody`. */
export function acceptAudioBodies(scope: FastifyInstance): void {
  acceptForms(scope, { unsupported: AUDIO_EXPECTED });
  addJsonParser(scope);
  scope.addContentTypeParser(AUDIO_TYPES, (_request, _payload, done) => done(null));
}

export function isAudioBody({ headers }: FastifyRequest): boolean {
  return AUDIO_TYPES.test(headers['content-type'] ?? '');
}

/** Streams the body to disk. @throws TandemError `PAYLOAD_TOO_LARGE`, or the signal's reason */
export async function receiveAudioBody(
  request: FastifyRequest,
  { path, maxFileBytes, signal }: { path: string; maxFileBytes: number; signal: AbortSignal },
): Promise<UploadedFile> {
  const { raw, headers } = request;
  let bytes = 0;
  async function* chunks(): AsyncGenerator<Buffer, void> {
    // After a rejected body, the connection must stay open for the response.
    for await (const chunk of raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxFileBytes) throw tooLarge({ maxFileBytes });
      yield chunk;
    }
  }
  try {
    signal.throwIfAborted();
    if (Number(headers['content-length'] ?? 0) > maxFileBytes) throw tooLarge({ maxFileBytes });
    const target = createWriteStream(path, { flags: 'wx', mode: 0o600 });
    await raceAbort(pipeline(chunks(), digestUpload(request), target, { signal }), signal);
  } catch (error) {
    discardRest(raw);
    signal.throwIfAborted();
    throw error;
  }
  return { path, bytes, name: null, mediaType: headers['content-type']!.split(';', 1)[0]!.trim() };
}
