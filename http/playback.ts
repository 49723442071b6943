import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { AudioForm } from '../actors/recordings/recording-library.ts';
import { TandemError } from '../machines/errors.ts';
import { signObjectUrl } from '../storage/object-urls.ts';
import { isSealedKey } from '../storage/objects.ts';
import type { CallRow } from '../storage/queries/calls.ts';
import type { RecordingRow } from '../storage/queries/recordings.ts';
import { hasTrunk } from '../storage/queries/trunks.ts';
import type { Role } from '../storage/queries/workspaces.ts';
import { type Principal, roleAllows, scopesAllow } from './auth.ts';
import { isWithin } from './client-address.ts';
import type { HttpContext } from './context.ts';

const PLAYBACK_TTL_MS = 5 * 60_000;

/** Gate T of the platform specification. @throws TandemError DIALER_NOT_PROVISIONED */
export async function requireTrunk({ sql }: HttpContext, { workspaceId }: Principal): Promise<void> {
  if (!(await hasTrunk(sql, workspaceId))) {
    throw new TandemError(
      'DIALER_NOT_PROVISIONED',
      'The workspace has no active trunk. Create one with POST /dialer/trunks.',
    );
  }
}

/**
 * Allows a call's transcript and recording to the user who placed it, and for inbound calls to admins and owners, with
 * scope `recordings:read`.
 */
export function mayAccessMedia(call: Pick<CallRow, 'direction' | 'createdByUserId'>, principal: Principal): boolean {
  return isOwnCall(call, principal) && scopesAllow(principal, 'recordings:read');
}

/** Whether another role of the caller changes nothing in the media and transcripts that it may access. */
export function seesAsMuch({ role: before }: Principal): (role: Role) => boolean {
  return (role) => roleAllows(role, 'admin') === roleAllows(before, 'admin');
}

function isOwnCall(
  { direction, createdByUserId }: Pick<CallRow, 'direction' | 'createdByUserId'>,
  { userId, role }: Principal,
): boolean {
  return direction === 'inbound' ? roleAllows(role, 'admin') : createdByUserId === userId;
}

/**
 * Checks that the caller may play a call's recording and that it exists.
 * @throws TandemError RECORDING_NOT_OWNED if another user placed the call; RECORDING_UNAVAILABLE, with different
 * messages, if the call was not recorded or its recording does not exist yet; RECORDING_DELETED
 */
export function requirePlayable(
  call: CallRow,
  { recording, principal }: { recording: RecordingRow | null; principal: Principal },
): RecordingRow & { objectKey: string } {
  if (!isOwnCall(call, principal)) {
    throw new TandemError(
      'RECORDING_NOT_OWNED',
      'Only the user who placed this call can play its recording; of an inbound call, admins and owners.',
    );
  }
  if (!call.recordRequested) {
    throw new TandemError('RECORDING_UNAVAILABLE', 'The call was placed without record: true, so it has no recording.');
  }
  if (recording?.status === 'deleted') {
    throw new TandemError('RECORDING_DELETED', 'The recording was deleted because its retention period had passed.');
  }
  if (recording === null || recording.status !== 'uploaded' || recording.objectKey === null) {
    throw new TandemError(
      'RECORDING_UNAVAILABLE',
      'The recording of this call does not exist yet. If the call has just ended, get it with refresh=1 first.',
    );
  }
  return { ...recording, objectKey: recording.objectKey };
}

/** Format of a playback URL, in the query or in the body, which takes precedence. */
export const PLAYBACK_FORM = {
  format: Type.Optional(
    Type.Enum(['wav', 'mp3', 'opus'], {
      default: 'wav',
      description:
        'Audio format: `wav` as recorded, `mp3`, or `opus` (in Ogg). The first request for another format than `wav` encodes the recording; if that takes longer than 15 seconds, the request fails with RECORDING_ENCODING and can be repeated. Tandem extension.',
    }),
  ),
  channels: Type.Optional(
    Type.Enum(['stereo', 'mono'], {
      default: 'stereo',
      description: '`stereo`: agent left, customer right. `mono`: both parties in one channel. Tandem extension.',
    }),
  ),
};

export const PlaybackBody = Type.Object(PLAYBACK_FORM, {
  description: 'Optional. Takes precedence over the query.',
  examples: [{ format: 'mp3', channels: 'mono' }],
});

/**
 * Encodes the recording if necessary. Signs URLs for it and its peaks, valid for five minutes.
 * @throws TandemError as `RecordingLibrary.inForm`
 */
export async function mintRecordingUrls(
  context: HttpContext,
  {
    recording,
    form: { format = 'wav', channels = 'stereo' },
    request,
  }: { recording: RecordingRow & { objectKey: string }; form: Partial<AudioForm>; request: FastifyRequest },
) {
  const { recordings } = context;
  const { key, sizeBytes } = await recordings.inForm(recording, { format, channels });
  const peaksKey = await recordings.peaksOf(recording);
  const playback = await mintPlaybackUrl(context, { objectKey: key, request });
  const peaks = peaksKey === null ? null : await mintPlaybackUrl(context, { objectKey: peaksKey, request });
  return { format, channels, sizeBytes, ...playback, peaks_url: peaks?.playback_url ?? null };
}

/** Signs a URL that plays the object for five minutes. */
export async function mintPlaybackUrl(
  { objects, urlSigningSecret, publicUrl, trustedProxies, now: clock }: HttpContext,
  { objectKey: key, request }: { objectKey: string; request: FastifyRequest },
): Promise<{ playback_url: string; expires_at: string }> {
  const now = clock();
  const expiresAt = new Date(Math.floor((now.getTime() + PLAYBACK_TTL_MS) / 1000) * 1000);
  const signed = {
    key,
    expiresAt,
    secret: urlSigningSecret,
    baseUrl: baseUrlOf({ publicUrl, trustedProxies }, request),
  };
  // A bucket cannot decrypt sealed objects.
  const presigned = isSealedKey(key) ? null : await objects.presign({ key, now, expiresAt });
  return { playback_url: presigned ?? signedMediaUrl(signed), expires_at: expiresAt.toISOString() };
}

/** Presigned URL, valid until `expiresAt`. `baseUrl` must not end with a slash. */
export function signedMediaUrl({
  baseUrl,
  ...object
}: {
  baseUrl: string;
  key: string;
  expiresAt: Date;
  secret: Buffer;
}): string {
  const { expires, signature } = signObjectUrl(object);
  return `${baseUrl}/media/${object.key}?expires=${expires}&signature=${signature}`;
}

/** Without trailing slash. */
export function baseUrlOf(
  { publicUrl, trustedProxies }: Pick<HttpContext, 'publicUrl' | 'trustedProxies'>,
  request: FastifyRequest,
): string {
  return publicUrl ?? ownOrigin(request, trustedProxies);
}

/**
 * Returns the host forwarded by a trusted proxy, or the address that the client connected to. Ignores the Host header
 * of other clients, because a cache or forged request could make a signed URL lead to another server.
 */
function ownOrigin({ protocol, host, raw: { socket } }: FastifyRequest, trustedProxies: readonly string[]): string {
  const scheme = protocol === 'https' ? 'https' : 'http';
  if (isWithin(socket.remoteAddress ?? '', trustedProxies)) {
    const isSane = typeof host === 'string' && /^[A-Za-z0-9.-]+(:\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](:\d{1,5})?$/.test(host);
    return `${scheme}://${isSane ? host : 'localhost'}`;
  }
  const address = (socket.localAddress ?? 'localhost').replace(/^::ffff:(?=\d+\.)/, '');
  const port = socket.localPort === undefined ? '' : `:${socket.localPort}`;
  return `http://${address.includes(':') ? `[${address}]` : address}${port}`;
}
