import { randomUUID } from 'node:crypto';
import { type ErrorCode, TandemError } from '../../machines/errors.ts';
import type { Lease, LimitStore } from './limit-store.ts';

export type SlotKind = 'stt' | 'tts' | 'llm' | 'document';

/**
 * One of a user's concurrent recognitions, syntheses, completions (or evaluations) or document readings. Always release
 * it.
 */
export interface Slot extends AsyncDisposable {
  /** Never fails: an unreleased slot expires. */
  release(): Promise<void>;
}

export interface Slots {
  /**
   * @throws TandemError `STT_`, `TTS_`, `CHAT_` or `DOCUMENT_CONCURRENCY_LIMIT` if all slots are taken; requests never
   * queue
   */
  acquire(request: { userId: number; kind: SlotKind }): Promise<Slot>;
  close(): Promise<void>;
}

/** Slots per user, shared by REST and WebSocket: platform specification, Limits. It does not mention the last two. */
export const CONCURRENCY: Readonly<Record<SlotKind, number>> = { stt: 8, tts: 5, llm: 8, document: 2 };
/** Time until the slots of a killed process are released. */
const LEASE_MS = 30_000;
/** Two renewals may fail before a slot is lost. */
const RENEWALS_PER_LEASE = 3;

export function createSlots(
  store: LimitStore,
  { concurrency = CONCURRENCY, leaseMs = LEASE_MS }: { concurrency?: Record<SlotKind, number>; leaseMs?: number } = {},
): Slots {
  const held = new Map<string, Lease>();
  let timer: NodeJS.Timeout | null = null;

  function renewWhileHeld(): void {
    timer ??= setInterval(() => {
      store.renewLeases([...held.values()], leaseMs).catch(() => {
        // The next renewal makes up for it.
      });
    }, leaseMs / RENEWALS_PER_LEASE).unref();
  }

  async function release(leaseId: string): Promise<void> {
    const lease = held.get(leaseId);
    if (lease === undefined) return;
    held.delete(leaseId);
    if (held.size === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
    await store.releaseLease(lease).catch(() => {
      // The slot expires without renewal.
    });
  }

  return {
    async acquire({ userId, kind }) {
      const lease = { key: `${kind}:${userId}`, leaseId: randomUUID() };
      const limit = concurrency[kind];
      if (!(await store.takeLease(lease, { limit, leaseMs }))) throw tooMany(kind, limit);
      held.set(lease.leaseId, lease);
      renewWhileHeld();
      const releaseLease = () => release(lease.leaseId);
      return { release: releaseLease, [Symbol.asyncDispose]: releaseLease };
    },

    async close() {
      await Promise.all([...held.keys()].map(release));
    },
  };
}

function tooMany(kind: SlotKind, limit: number): TandemError {
  const { code, work } = REFUSALS[kind];
  const message = `All ${limit} ${work} that a user may have at a time are under way. Wait for one to finish.`;
  return new TandemError(code, message, { details: { limit } });
}

const REFUSALS: Readonly<Record<SlotKind, { code: ErrorCode; work: string }>> = {
  stt: { code: 'STT_CONCURRENCY_LIMIT', work: 'transcriptions' },
  tts: { code: 'TTS_CONCURRENCY_LIMIT', work: 'syntheses' },
  llm: { code: 'CHAT_CONCURRENCY_LIMIT', work: 'completions and evaluations' },
  document: { code: 'DOCUMENT_CONCURRENCY_LIMIT', work: 'readings of documents' },
};
