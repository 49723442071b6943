import { type ActorRefFrom, createActor, fromPromise } from 'xstate';
import { type ShapedVoice, type VoiceInput, voiceMachine } from '../../machines/voice.machine.ts';
import type { Clock } from '../../runtime/clock.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { concludeVoice, type VoiceRow } from '../../storage/queries/voices.ts';
import { emitWebhookEvent } from '../../storage/queries/webhook-deliveries.ts';
import type { Deliverer } from '../callbacks/deliverer.ts';
import type { Logger } from '../logger.ts';

/** One actor for each voice in creation on this node. */
export interface VoiceActors {
  /** Starts an actor from the voice's row, or reports complete samples to a waiting one. */
  follow(voice: VoiceInput): void;
  drop(voiceId: string): void;
  close(): void;
}

export interface VoiceActorsOptions {
  sql: Sql;
  /** Creates a voice from its samples; null if it was deleted. Rejects with errors that a retry may resolve. */
  shape: (voiceId: string, signal: AbortSignal) => Promise<ShapedVoice | null>;
  deliverer: Pick<Deliverer, 'enqueue'>;
  clock: Clock;
  logger: Logger;
}

export function createVoiceActors({ sql, shape, deliverer, clock, logger }: VoiceActorsOptions): VoiceActors {
  const actors = new Map<string, ActorRefFrom<typeof machine>>();
  const machine = voiceMachine.provide({
    actors: {
      shape: fromPromise(({ input: { voiceId }, signal }) =>
        noting(voiceId, async () => (await shape(voiceId, signal)) ?? GONE, signal),
      ),
      conclude: fromPromise(({ input: { voiceId, shaped }, signal }) =>
        noting(voiceId, () => conclude(voiceId, shaped), signal),
      ),
    },
  });

  async function noting<T>(voiceId: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!signal.aborted) logger.warn({ voiceId, err: error }, 'voice creation failed and will be retried');
      throw error;
    }
  }

  async function conclude(voiceId: string, shaped: ShapedVoice): Promise<void> {
    const now = new Date(clock.now());
    const conclusion = shaped.isUsable ? ({ status: 'ready', ...shaped } as const) : failureOf(shaped);
    const deliveries = await inTransaction(sql, async (tx) => {
      const row = await concludeVoice(tx, voiceId, { conclusion, now });
      return row === null ? [] : await emitWebhookEvent(tx, { ...eventOf(row), workspaceId: row.workspaceId, now });
    });
    for (const id of deliveries) void deliverer.enqueue(id);
  }

  return {
    follow(voice) {
      const { voiceId, hasSamples } = voice;
      const running = actors.get(voiceId);
      if (running) {
        if (hasSamples) running.send({ type: 'samples.completed' });
        return;
      }
      const actor = createActor(machine, { input: voice, clock });
      actors.set(voiceId, actor);
      const forget = () => actors.delete(voiceId);
      actor.subscribe({
        complete: forget,
        error(error) {
          forget();
          logger.error({ voiceId, err: error }, 'voice actor failed');
        },
      });
      actor.start();
    },

    drop: (voiceId) => actors.get(voiceId)?.send({ type: 'voice.deleted' }),

    close() {
      for (const actor of actors.values()) actor.stop();
      actors.clear();
    },
  };
}

/** Has no effect, because the row is deleted. */
const GONE: ShapedVoice = { isUsable: false, errorCode: 'INTERNAL', error: 'The voice was deleted.' };

function failureOf({ errorCode, error }: Extract<ShapedVoice, { isUsable: false }>) {
  return { status: 'failed', errorCode, error } as const;
}

function eventOf({ id, status, name, language, errorCode }: VoiceRow) {
  if (status === 'failed') return { event: 'voice.failed', data: { voice_id: id, error: errorCode! } } as const;
  return { event: 'voice.ready', data: { voice_id: id, name, language } } as const;
}
