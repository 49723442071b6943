import type { FastifyRequest } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import { signObjectUrl } from '../storage/object-urls.ts';
import type { CallRow } from '../storage/queries/calls.ts';
import type { RecordingRow } from '../storage/queries/recordings.ts';
import { hasTrunk } from '../storage/queries/trunks.ts';
import { type Principal, scopesAllow } from './auth.ts';
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

/** Only the user who placed a call may read its transcript or play its recording, with scope `recordings:read`. */
export function mayAccessMedia(call: CallRow, principal: Principal): boolean {
  return call.createdByUserId === principal.userId && scopesAllow(principal, 'recordings:read');
}

/**
 * Checks that the caller may play the recording of a call, and that it exists.
 * @throws TandemError RECORDING_NOT_OWNED if another user placed the call; RECORDING_UNAVAILABLE if the call was not
 * recorded, or if its recording does not exist yet, with different messages.
 */
export function requirePlayable(
  call: CallRow,
  { recording, principal }: { recording: RecordingRow | null; principal: Principal },
): RecordingRow & { objectKey: string } {
  if (call.createdByUserId !== principal.userId) {
    throw new TandemError(
      'RECORDING_NOT_OWNED',
      'Another user placed this call. Only that user can play its recording.',
    );
  }
  if (!call.recordRequested) {
    throw new TandemError('RECORDING_UNAVAILABLE', 'The call was placed without record: true, so it has no recording.');
  }
  if (recording === null || recording.status !== 'uploaded' || recording.objectKey === null) {
    throw new TandemError(
      'RECORDING_UNAVAILABLE',
      'The recording of this call does not exist yet. If the call has just ended, get it with refresh=1 first.',
    );
  }
  return { ...recording, objectKey: recording.objectKey };
}

/** Signs a URL that plays the object for five minutes. The URL is not stored. */
export async function mintPlaybackUrl(
  { objects, urlSigningSecret, publicUrl, now: clock }: HttpContext,
  { objectKey: key, request }: { objectKey: string; request: FastifyRequest },
): Promise<{ playback_url: string; expires_at: string }> {
  const now = clock();
  const expiresAt = new Date(Math.floor((now.getTime() + PLAYBACK_TTL_MS) / 1000) * 1000);
  const signed = { key, expiresAt, secret: urlSigningSecret, baseUrl: baseUrlOf({ publicUrl }, request) };
  const presigned = await objects.presign({ key, now, expiresAt });
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

/** Public base URL of this server, without a slash at the end. */
export function baseUrlOf({ publicUrl }: Pick<HttpContext, 'publicUrl'>, request: FastifyRequest): string {
  return publicUrl ?? ownOrigin(request);
}

/** The origin the client used. Only that client receives it, so its Host header can be trusted. */
function ownOrigin({ protocol, host }: FastifyRequest): string {
  const sane = typeof host === 'string' && /^[A-Za-z0-9.-]+(:\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](:\d{1,5})?$/.test(host);
  return `${protocol === 'https' ? 'https' : 'http'}://${sane ? host : 'localhost'}`;
}
