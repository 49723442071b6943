import { parseWav } from '../../media/wav.ts';
import type { DeliveryRow } from '../../storage/queries/deliveries.ts';
import { requireSoundBooks } from '../../test/storage/sound-books.ts';
import { chat } from './load.ts';
import { post, type Town } from './town.ts';

/** A recording may lack what the server had not written, and the moments before it began. */
const RECORDING_TOLERANCE_MS = 3_000;
const TERMINAL = ['call.completed', 'call.not_answered', 'call.failed', 'call.temporaryfailed', 'call.rejected'];

/** Calls that are not final, and recordings that are not settled. */
export async function unsettled({ sql }: Town): Promise<string[]> {
  const calls = await sql<{ callId: string; state: string }[]>`
    select call_id, state from calls where state not in ('completed', 'failed', 'rejected')`;
  const recordings = await sql<{ id: string; status: string }[]>`
    select id, status from recordings where status not in ('uploaded', 'failed', 'deleted')`;
  return [
    ...calls.map(({ callId, state }) => `call ${callId} is ${state}`),
    ...recordings.map(({ id, status }) => `recording ${id} is ${status}`),
  ];
}

/**
 * Returns one line per violation in the database, once everything has settled. Covers calls since `since`; older ones
 * were checked before.
 */
export async function brokenInvariants(town: Town, { since }: { since: Date }): Promise<string[]> {
  const { sql, workspaceId } = town;
  const broken = await unsettled(town);
  const logs = await sql<{ callId: string; seq: number; events: string[]; last: number }[]>`
    select c.call_id, c.seq, array_agg(e.event order by e.sequence) as events, max(e.sequence)::int as last
    from calls c join call_events e on e.call_id = c.call_id
    where c.created_at >= ${since} group by c.call_id, c.seq`;
  for (const { callId, seq, events, last } of logs) {
    if (last !== events.length || seq !== last)
      broken.push(`events of ${callId} have gaps: ${events.length} of ${last}`);
    const terminal = events.filter((event) => TERMINAL.includes(event));
    if (terminal.length !== 1 || !TERMINAL.includes(events.at(-1)!)) {
      broken.push(`call ${callId} has ${terminal.length} terminal events: ${events.join(' ')}`);
    }
  }
  await requireSoundBooks(sql, workspaceId).catch((error: Error) => broken.push(`books: ${error.message}`));
  const holds = await sql<{ id: string }[]>`select id from holds where status = 'open'`;
  if (holds.length > 0) broken.push(`${holds.length} holds without a live call`);
  broken.push(...(await brokenRecordings(town, since)));
  return broken;
}

async function requireOk(answer: Response): Promise<void> {
  if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).slice(0, 200)}`);
}

async function brokenRecordings({ sql, nodes }: Town, since: Date): Promise<string[]> {
  const broken: string[] = [];
  const rows = await sql<
    { id: string; callId: string; durationMs: bigint; talkSeconds: number; error: string | null; isCut: boolean }[]
  >`
    select r.id, r.call_id, r.duration_ms, c.talk_seconds, c.error, exists (
      select 1 from call_events e where e.call_id = c.call_id and e.event = 'recording.failed') as is_cut
    from recordings r join calls c on c.call_id = r.call_id
    where r.status = 'uploaded' and c.created_at >= ${since}`;
  for (const { id, callId, durationMs, talkSeconds, error, isCut } of rows) {
    const node = nodes.find(({ isUp }) => isUp)!;
    try {
      const answer = await post(node.url, `/dialer/click2call/${callId}/recording`);
      await requireOk(answer);
      const { data } = (await answer.json()) as { data: { recording: { playback_url: string } } };
      const playback = await fetch(data.recording.playback_url);
      await requireOk(playback);
      const wav = parseWav(Buffer.from(await playback.arrayBuffer()));
      if (Math.abs(wav.durationMs - Number(durationMs)) > 1) {
        broken.push(`recording ${id} has ${wav.durationMs} ms, and its row says ${durationMs}`);
      }
      const missingMs = Math.abs(talkSeconds * 1_000 - wav.durationMs);
      if (error !== 'server_lost' && !isCut && missingMs > RECORDING_TOLERANCE_MS) {
        broken.push(`recording ${id} has ${wav.durationMs} ms of a talk of ${talkSeconds} s`);
      }
    } catch (cause) {
      broken.push(`recording ${id} cannot be played: ${(cause as Error).message}`);
    }
  }
  return broken;
}

/**
 * Phones still in a call although all calls are settled. Only the SIP server that sent an INVITE may cancel it (RFC
 * 3261 section 9.1). If that server is gone, a phone rings until it gives up, or answers and gets no ACK until it has
 * repeated its answer for 32 s (section 13.3.1.4).
 */
export function busyPhones({ agent, customers }: Town, { sipServerWasLost }: { sipServerWasLost: boolean }): string[] {
  return [agent, ...customers].flatMap(({ name, calls }) =>
    calls
      .filter((call) => call.isOpen())
      .filter(({ state }) => !(sipServerWasLost && (state === 'proceeding' || state === 'answered')))
      .map(({ callId, state }) => `phone "${name}" is still in the call ${callId} (${state})`),
  );
}

/** Ends the calls that phones still have. */
export function freePhones({ agent, customers }: Town): void {
  for (const call of [agent, ...customers].flatMap(({ calls }) => calls)) if (call.isOpen()) call.hangup();
}

/** Callbacks that were not delivered, or were delivered under more than one id. */
export async function brokenCallbacks({ sql, receiver }: Town): Promise<string[]> {
  const due = await sql<
    Pick<DeliveryRow, 'callId' | 'status' | 'eventId' | 'attempts' | 'lastHttpStatus' | 'lastError' | 'nextAttemptAt'>[]
  >`
    select call_id, status, event_id, attempts, last_http_status, last_error, next_attempt_at
    from deliveries where kind = 'callback'`;
  const settled = await sql<{ callId: string }[]>`
    select call_id from calls where state in ('completed', 'failed') and callback_url is not null`;
  const broken = settled
    .filter(({ callId }) => due.filter((row) => row.callId === callId).length !== 1)
    .map(({ callId }) => `call ${callId} has not exactly one callback`);
  const ids = new Map<string, Set<string>>();
  for (const { body } of receiver.received) {
    const callId = body.data.call.call_id;
    ids.set(callId, (ids.get(callId) ?? new Set()).add(body.event_id));
  }
  for (const { callId, status, eventId, ...row } of due) {
    const received = [...(ids.get(callId!) ?? [])];
    if (status !== 'delivered') {
      const last = row.lastHttpStatus ?? row.lastError;
      const next = row.nextAttemptAt?.toISOString();
      broken.push(`the callback of ${callId} is ${status} after ${row.attempts} attempts (${last}), next at ${next}`);
    } else if (received.length !== 1 || received[0] !== eventId) {
      broken.push(`the callback of ${callId} came under ${received.length} ids`);
    }
  }
  return broken;
}

/** The limit per user (`storage/limits/slots.ts`). */
const CHATS_AT_ONCE = 8;

/** Chat slots that are still taken. Slots of a killed process expire after half a minute. */
export async function brokenSlots({ nodes, models }: Town): Promise<string[]> {
  const areDecided = Promise.withResolvers<void>();
  let arrived = 0;
  models.beforeChat = async () => {
    arrived += 1;
    if (arrived === CHATS_AT_ONCE) areDecided.resolve();
    await areDecided.promise;
  };
  const chats = Array.from({ length: CHATS_AT_ONCE }, async (_, index) => {
    const { status } = await chat(nodes[index % nodes.length]!.url);
    if (status === 200) return [];
    // Releases the other chats, which wait for this one.
    areDecided.resolve();
    return [`a chat is refused with ${status}`];
  });
  return (await Promise.all(chats)).flat();
}
