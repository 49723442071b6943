import type { SrfReceivedRequest, SrfReply } from './srf-types.ts';

/** Key presses in INFO requests (RFC 2976 as phones use it; RFC 6086 calls this legacy usage). */

/** Supported types, for the Accept header of a 415. */
const INFO_TYPES = 'application/dtmf-relay, application/dtmf';
/** More than any phone writes. */
const MOST_BODY_CHARACTERS = 256;
const DEFAULT_DURATION_MS = 160;
const MOST_DURATION_MS = 10_000;
/** Phones number the last two keys as in RFC 4733. */
const NUMBERED: Readonly<Record<string, string>> = { '10': '*', '11': '#' };
/** A hook flash, which is not a digit. */
const FLASH: ReadonlySet<string> = new Set(['16', '!']);

export type InfoContent =
  | { kind: 'digit'; digit: string; durationMs: number }
  /** Valid without a digit: empty, or a hook flash. */
  | { kind: 'nothing' }
  | { kind: 'malformed' }
  | { kind: 'unsupported' };

/** Responds to an INFO. Returns its content. */
export function respondToInfo(request: Pick<SrfReceivedRequest, 'get' | 'body'>, reply: SrfReply): InfoContent {
  const content = readInfo(request.get('Content-Type'), request.body);
  if (content.kind === 'unsupported') reply.send(415, { headers: { Accept: INFO_TYPES } });
  else reply.send(content.kind === 'malformed' ? 400 : 200, {});
  return content;
}

/**
 * Parses an INFO. `application/dtmf-relay` has lines such as `Signal=5` and `Duration=160`; `application/dtmf` has only
 * the digit, but some phones write the same lines. Durations are in milliseconds, 160 if absent, and 10,000 at most.
 */
export function readInfo(contentType: string | undefined, body: string | undefined): InfoContent {
  const type = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();
  if (type === '') return body ? { kind: 'unsupported' } : { kind: 'nothing' };
  if (type !== 'application/dtmf-relay' && type !== 'application/dtmf') return { kind: 'unsupported' };
  if (body === undefined || body.length > MOST_BODY_CHARACTERS) return { kind: 'malformed' };
  if (type === 'application/dtmf' && !body.includes('=')) return digitOf(body.trim(), undefined);
  const fields = fieldsOf(body);
  return fields === null ? { kind: 'malformed' } : digitOf(fields.get('signal'), fields.get('duration'));
}

/** Names in lower case. Null for an invalid line or a repeated field. */
function fieldsOf(body: string): Map<string, string> | null {
  const fields = new Map<string, string>();
  for (const line of body.split(/\r\n|\n|\r/)) {
    if (line.trim() === '') continue;
    const at = line.indexOf('=');
    const name = line.slice(0, Math.max(0, at)).trim().toLowerCase();
    if (name === '' || fields.has(name)) return null;
    fields.set(name, line.slice(at + 1).trim());
  }
  return fields;
}

function digitOf(signal: string | undefined, duration: string | undefined): InfoContent {
  if (signal === undefined || (duration !== undefined && !/^\d{1,200}$/.test(duration))) return { kind: 'malformed' };
  if (FLASH.has(signal)) return { kind: 'nothing' };
  const digit = NUMBERED[signal] ?? signal.toUpperCase();
  if (!/^[0-9A-D*#]$/.test(digit)) return { kind: 'malformed' };
  const durationMs = Math.min(MOST_DURATION_MS, Number(duration ?? DEFAULT_DURATION_MS));
  return { kind: 'digit', digit, durationMs };
}
