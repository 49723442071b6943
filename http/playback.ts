import type { FastifyRequest } from 'fastify';
import { TandemError } from '../machines/errors.ts';
import { signObjectUrl } from '../storage/object-urls.ts';
import type { CallRow } from '../storage/queries/calls.ts';
import type { RecordingRow } from '../storage/queries/recordings.ts';
import { hasTrunk } from '../storage/queries/trunks.ts';
import { type Principal, scopesAllow } from './auth.ts';
import type { HttpContext } from './context.ts';

const PLAYBACK_TTL_MS = 5 * 60_000;

/** Gate T. @throws TandemError DIALER_NOT_PROVISIONED */
export async function requireTrunk({ sql }: HttpContext, { workspaceId }: Principal): Promise<void> {
  if (!(await hasTrunk(sql, workspaceId))) {
    throw new TandemError('DIALER_NOT_PROVISIONED', 'The workspace has no active trunk. Add one first.');
  }
}

/** What was said in a call, as text or sound, is for the user who placed it, with credentials that reach so far. */
export function mayHear(call: CallRow, principal: Principal): boolean {
  return call.createdByUserId === principal.userId && scopesAllow(principal, 'recordings:read');
}

/**
 * A recording belongs to the user who placed the call.
 * @throws TandemError RECORDING_NOT_OWNED for a teammate; RECORDING_UNAVAILABLE when the call was not recorded, or
 * when nothing came of it so far: the two messages differ.
 */
export function requirePlayable(
  call: CallRow,
  { recording, principal }: { recording: RecordingRow | null; principal: Principal },
): RecordingRow & { objectKey: string } {
  if (call.createdByUserId !== principal.userId) {
    throw new TandemError('RECORDING_NOT_OWNED', 'The recording belongs to another user of the workspace.');
  }
  if (!call.recordRequested) {
    throw new TandemError('RECORDING_UNAVAILABLE', 'The call was not recorded: it was placed without record: true.');
  }
  if (recording === null || recording.status !== 'uploaded' || recording.objectKey === null) {
    throw new TandemError(
      'RECORDING_UNAVAILABLE',
      'No recording has been produced for this call. If it ended just now, ask for the call with refresh=1 first.',
    );
  }
  return { ...recording, objectKey: recording.objectKey };
}

/** Mints a URL that plays the object for five minutes. It is not stored. */
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

/** Where whoever has it gets an object until then. `baseUrl` has no slash at its end. */
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

/** Where clients reach this server, without a slash at the end. */
export function baseUrlOf({ publicUrl }: Pick<HttpContext, 'publicUrl'>, request: FastifyRequest): string {
  return publicUrl ?? ownOrigin(request);
}

/** The address this client reached us by; only that client is told. */
function ownOrigin({ protocol, host }: FastifyRequest): string {
  const sane = typeof host === 'string' && /^[A-Za-z0-9.-]+(:\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](:\d{1,5})?$/.test(host);
  return `${protocol === 'https' ? 'https' : 'http'}://${sane ? host : 'localhost'}`;
}
