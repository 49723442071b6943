import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { createApiKey } from '../../storage/queries/api-keys.ts';
import { seedWorkspace } from '../../test/storage/seed.ts';
import { beginningFor, LADDER, LATE_FROM_MS } from '../stt-load.ts';
import { FRAME_BYTES, type Line, PACE_MS, spansPlayed, UTTERANCE_END_MS } from '../stt-session.ts';
import { beginFigures, type Figures, percentile } from './figures.ts';
import type { ServerNode, Servers } from './servers.ts';

/** Adds `/ws/stt` clients that speak at telephone pace, until finals come late or a session is rejected. */

export interface LiveStep {
  sessions: number;
  /** From the end of an utterance to its last final, beyond `utterance_end_ms`. */
  lateMs: number[];
  /** Error codes of sessions that the server rejected or ended. */
  refused: string[];
  figures: Figures;
}

/** The limit per user. */
const SESSIONS_OF_USER = 8;
/** Recognizers load on first use. */
const WARM_UP_MS = 15_000;

export async function raiseLive(options: {
  servers: Servers;
  line: Line;
  most: number;
  stepMs: number;
  onProgress: (what: string) => void;
}): Promise<LiveStep[]> {
  const { servers, line, most, stepMs, onProgress } = options;
  const stop = new AbortController();
  const steps: LiveStep[] = [];
  const speaking: Promise<void>[] = [];
  let apiKey = '';
  const finals: number[] = [];
  const refused: string[] = [];
  let live = 0;
  const begin = async (): Promise<void> => {
    if (speaking.length % SESSIONS_OF_USER === 0) apiKey = await newUser(servers);
    const node = servers.nodes[speaking.length % servers.nodes.length]!;
    const speaker = speak({ node, apiKey, line, beginAt: beginningFor(line, speaking.length), stop: stop.signal });
    speaking.push(speaker.ended.then((code) => void (code !== null && refused.push(code))));
    speaker.onFinal((lateMs) => finals.push(lateMs));
    if (await speaker.started) live += 1;
  };
  try {
    onProgress('loading recognizers');
    await Promise.all(servers.nodes.map(begin));
    await pause(WARM_UP_MS);
    for (const rung of [...LADDER.filter((rung) => rung > live && rung < most), most]) {
      while (live < rung && refused.length === 0) await begin();
      onProgress(`${live} sessions`);
      finals.length = 0;
      const figures = await beginFigures(servers);
      await pause(stepMs);
      steps.push({ sessions: live, lateMs: [...finals], refused: [...refused], figures: await figures() });
      if (refused.length > 0 || !isInTime(steps.at(-1)!)) break;
    }
  } finally {
    stop.abort();
    await Promise.all(speaking);
  }
  return steps;
}

export function isInTime({ lateMs }: LiveStep): boolean {
  return lateMs.length > 0 && percentile(lateMs, 99) <= LATE_FROM_MS;
}

interface Speaker {
  /** False if it was rejected. */
  started: Promise<boolean>;
  /** Resolves with the error code that ended the session; null after `stop`. */
  ended: Promise<string | null>;
  onFinal(listener: (lateMs: number) => void): void;
}

function speak(options: { node: ServerNode; apiKey: string; line: Line; beginAt: number; stop: AbortSignal }): Speaker {
  const { node, apiKey, line, beginAt, stop } = options;
  const socket = new WebSocket(`${node.url.replace('http', 'ws')}/ws/stt`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  const started = Promise.withResolvers<boolean>();
  let listener: (lateMs: number) => void = () => {};
  let code: string | null = null;
  let beganAtMs = 0;
  socket.on('message', (frame) => {
    const message = JSON.parse(String(frame)) as ServerMessage;
    if (message.server_info) socket.send(JSON.stringify({ type: 'start', languages: ['en'] }));
    else if (message.type === 'session_started') {
      beganAtMs = performance.now();
      started.resolve(true);
      void play();
    } else if (message.type === 'error') code = message.code ?? 'error';
    else if (message.speech_final && message.text !== '') {
      const playedMs = performance.now() - beganAtMs;
      const endedMs = endOfUtterance(line, { beginAtMs: beginAt * PACE_MS, playedMs, final: message });
      if (endedMs !== null) listener(playedMs - endedMs - UTTERANCE_END_MS);
    }
  });
  socket.on('error', (error) => {
    code ??= error.message;
  });
  const ended = once(socket, 'close').then(([status]) => {
    started.resolve(false);
    return stop.aborted ? null : (code ?? `closed with ${status}`);
  });

  async function play(): Promise<void> {
    for (let frame = 0; !stop.aborted && socket.readyState === socket.OPEN; frame += 1) {
      await pause(Math.max(0, beganAtMs + (frame + 1) * PACE_MS - performance.now()));
      const at = ((beginAt + frame) * FRAME_BYTES) % line.octets.length;
      socket.send(line.octets.subarray(at, at + FRAME_BYTES));
    }
    socket.terminate();
  }

  return {
    started: started.promise,
    ended,
    onFinal(how) {
      listener = how;
    },
  };
}

/**
 * End of the played utterance that a final belongs to; null while it is still played. The end of the final itself is that
 * of the last recognised word, which may be earlier.
 */
function endOfUtterance(
  line: Line,
  { beginAtMs, playedMs, final }: { beginAtMs: number; playedMs: number; final: ServerMessage },
): number | null {
  const span = spansPlayed(line, beginAtMs, playedMs).findLast(
    ({ startMs, endMs }) => startMs < 1000 * final.end! && endMs > 1000 * final.start!,
  );
  return span === undefined || span.endMs > playedMs ? null : span.endMs;
}

interface ServerMessage {
  type: string;
  code?: string;
  server_info?: object;
  speech_final?: boolean;
  text?: string;
  /** Seconds of audio. */
  start?: number;
  end?: number;
}

async function newUser({ sql }: Servers): Promise<string> {
  const { workspace, user } = await seedWorkspace(sql, { balanceNano: 1_000_000_000_000n });
  const key = `sk_${randomBytes(24).toString('base64url')}`;
  await createApiKey(sql, {
    ...{ workspaceId: workspace.id, createdByUserId: user.id, name: 'bench', now: new Date() },
    ...{ prefix: key.slice(0, 7), last4: key.slice(-4), keyHash: createHash('sha256').update(key).digest() },
  });
  return key;
}
