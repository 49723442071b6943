import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { PlayableObject } from '../../actors/recordings/recording-library.ts';
import { TandemError } from '../../machines/errors.ts';
import { verifyObjectUrl } from '../../storage/object-urls.ts';
import { CONTENT_TYPES, type ObjectStat, presentationOf } from '../../storage/objects.ts';
import { parseByteRange } from '../byte-range.ts';
import { type HttpApp, type HttpContext, linkSecrets } from '../context.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';

const PeaksSchema = Type.Object(
  {
    version: Type.Literal(2),
    channels: Type.Integer({ description: 'Channels: agent, customer.' }),
    sample_rate: Type.Integer({ description: 'Sample rate of the audio in Hz.' }),
    samples_per_pixel: Type.Integer({ description: 'Samples per point: a hundredth of a second.' }),
    bits: Type.Literal(8),
    length: Type.Integer({ description: 'Points.' }),
    data: Type.Array(Type.Integer({ minimum: -128, maximum: 127 }), {
      description: 'Per point and channel, the least and the greatest sample.',
    }),
  },
  {
    description: 'Peaks of a recording, in the JSON format of audiowaveform.',
    examples: [
      {
        ...{ version: 2, channels: 2, sample_rate: 8000, samples_per_pixel: 80, bits: 8, length: 2 },
        data: [-3, 4, 0, 0, -90, 88, -1, 1],
      },
    ],
  },
);
const AUDIO = Object.fromEntries(
  Object.values(CONTENT_TYPES).map((type) => [
    type,
    { schema: type === 'application/json' ? PeaksSchema : Type.String({ format: 'binary' }) },
  ]),
);

/** Serves objects at signed URLs. The signature is the credential, so a media player needs no header. */
export function mediaRoutes(app: HttpApp, context: HttpContext): void {
  const input = {
    params: Type.Object({ '*': Type.String({ title: 'key', description: 'Object key, from the playback URL.' }) }),
    querystring: Type.Object({
      expires: Type.Optional(Type.String({ description: 'Expiry in Unix seconds, from the playback URL.' })),
      signature: Type.Optional(Type.String({ description: 'Signature, from the playback URL.' })),
    }),
  };
  app.route({
    method: 'GET',
    url: '/media/*',
    config: { access: 'public', sends: ['content-disposition', 'etag', 'last-modified', 'accept-ranges'] },
    exposeHeadRoute: false,
    schema: {
      ...input,
      tags: ['click-to-call'],
      operationId: 'getMedia',
      summary: 'Play audio',
      description:
        'Serves the audio behind a playback URL, or the peaks behind a peaks URL, whole or one byte range. The signature in the URL is the credential.',
      security: [],
      response: {
        200: responseOf({ description: 'The audio.', content: AUDIO }),
        206: responseOf({ description: 'The requested byte range.', content: AUDIO }),
        304: responseOf(Type.Null({ description: 'Not modified since the version in If-None-Match.' })),
        ...REFUSALS,
      },
    },
    handler: (request, reply) => answer(context, { ...request.query, key: request.params['*'], request, reply }),
  });
  // Fastify's own HEAD route would read the whole file and discard it.
  app.route({
    method: 'HEAD',
    url: '/media/*',
    config: { access: 'public' },
    schema: { ...input, hide: true },
    handler: (request, reply) => answer(context, { ...request.query, key: request.params['*'], request, reply }),
  });
}

interface MediaRequest {
  key: string;
  expires?: string;
  signature?: string;
  request: FastifyRequest;
  reply: FastifyReply;
}

async function answer(
  context: HttpContext,
  { key, expires = '', signature = '', request, reply }: MediaRequest,
): Promise<FastifyReply> {
  const token = { expires: /^\d{1,12}$/.test(expires) ? Number(expires) : 0, signature };
  verifyObjectUrl({ key, ...token, secrets: linkSecrets(context), now: context.now() });
  const object = await context.recordings.open(key);
  if (object === null) throw new TandemError('NOT_FOUND', 'The audio no longer exists.');
  return await sendObject({ object, request, reply });
}

async function sendObject({
  object,
  request,
  reply,
}: {
  object: PlayableObject;
  request: FastifyRequest;
  reply: FastifyReply;
}): Promise<FastifyReply> {
  const { key, sizeBytes } = object;
  const etag = `"${sizeBytes.toString(16)}-${object.modifiedAt.getTime().toString(16)}"`;
  const about = {
    etag,
    'last-modified': object.modifiedAt.toUTCString(),
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
    // Lets consoles on other origins play the audio, and a browser tab open it.
    'cross-origin-resource-policy': 'cross-origin',
    'content-security-policy': "default-src 'none'; media-src 'self'",
  };
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.headers(about).code(304).send();

  const wanted = rangeStillApplies(request, object, etag) ? request.headers.range : undefined;
  const range = parseByteRange(wanted, sizeBytes);
  if (range === 'unsatisfiable') {
    reply.headers({ ...about, 'content-range': `bytes */${sizeBytes}` });
    throw new TandemError('RANGE_NOT_SATISFIABLE', `The range is outside the audio, which has ${sizeBytes} bytes.`);
  }
  const part = range === 'whole' ? { start: 0, end: sizeBytes - 1 } : range;
  // Open the object before sending headers: it may have been deleted, and an error is not audio.
  const isEmpty = request.method === 'HEAD' || sizeBytes === 0;
  const audio = isEmpty ? '' : await object.read(part);
  if (range !== 'whole') {
    reply.code(206).header('content-range', `bytes ${part.start}-${part.end}/${sizeBytes}`);
  }
  const { contentType, contentDisposition } = presentationOf(key);
  reply.headers({
    ...about,
    'content-type': contentType,
    'content-length': part.end - part.start + 1,
    'content-disposition': contentDisposition,
  });
  return reply.send(audio);
}

function matchesEtag(header: string | undefined, etag: string): boolean {
  return (header ?? '').split(',').some((item) => ['*', etag, `W/${etag}`].includes(item.trim()));
}

/** If-Range (RFC 9110 §13.1.5): sends the whole object instead of the range if it has changed. */
function rangeStillApplies({ headers }: FastifyRequest, { modifiedAt }: ObjectStat, etag: string): boolean {
  const condition = headers['if-range'];
  return condition === undefined || condition === etag || condition === modifiedAt.toUTCString();
}
