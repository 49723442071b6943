import { createHash } from 'node:crypto';
import type { Clock } from '../runtime/clock.ts';
import type { CallMessage } from '../sip/trace/wire-message.ts';
import type { Sql } from '../storage/database.ts';
import { addSipMessages, type StoredSipMessage } from '../storage/queries/sip-messages.ts';
import type { Logger } from './logger.ts';

/** Stores the SIP messages of calls. Calls neither wait for it nor fail with it. */
export interface CallTrace extends AsyncDisposable {
  /** Never throws. */
  add(message: CallMessage): void;
  flush(): Promise<void>;
  dump(): { waiting: number; lost: number };
}

export interface CallTraceOptions {
  sql: Sql;
  /** Percentage of calls to trace. */
  percent: number;
  clock: Clock;
  logger: Logger;
}

export function openCallTrace({ sql, percent, clock, logger }: CallTraceOptions): CallTrace {
  const budgets = new Map<string, Budget>();
  const waiting: StoredSipMessage[] = [];
  let lost = 0;
  let timer: unknown = null;
  let writing: Promise<void> = Promise.resolve();

  function budgetOf(callId: string): Budget {
    let budget = budgets.get(callId);
    if (budget === undefined) {
      const isOpen = isSampled(callId, percent);
      budget = { messages: isOpen ? MOST_MESSAGES : 0, bytes: MOST_BYTES, isOpen };
      budgets.set(callId, budget);
      if (budgets.size > MOST_CALLS) budgets.delete(budgets.keys().next().value!);
    }
    return budget;
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, BATCH);
      try {
        await addSipMessages(sql, batch);
      } catch (error) {
        lost += batch.length;
        logger.warn({ err: error, messages: batch.length }, 'SIP messages could not be stored');
      }
    }
  }

  function flush(): Promise<void> {
    clock.clearTimeout(timer);
    timer = null;
    writing = writing.then(writeAll);
    return writing;
  }

  return {
    add(message) {
      const budget = budgetOf(message.callId);
      if (!budget.isOpen) return;
      if (waiting.length >= MOST_WAITING) {
        lost++;
        return;
      }
      waiting.push(charged(message, budget));
      timer ??= clock.setTimeout(() => void flush(), WRITE_EVERY_MS);
    },
    flush,
    dump: () => ({ waiting: waiting.length, lost }),
    [Symbol.asyncDispose]: flush,
  };
}

interface Budget {
  messages: number;
  bytes: number;
  isOpen: boolean;
}

/** Deducts a message. The one that exceeds the budget is cut off and ends the trace. */
function charged(message: CallMessage, budget: Budget): StoredSipMessage {
  const { callId, leg, atMs, direction, transport, sipCallId, local, remote, text } = message;
  budget.messages -= 1;
  budget.bytes -= text.length;
  const isCut = budget.messages < 0 || budget.bytes < 0 || text.length > MOST_MESSAGE_BYTES;
  if (isCut) budget.isOpen = false;
  return {
    ...{ callId, leg, at: new Date(atMs), direction, transport, sipCallId },
    localHost: local?.host ?? null,
    localPort: local?.port ?? null,
    remoteHost: remote?.host ?? null,
    remotePort: remote?.port ?? null,
    message: Buffer.from(isCut ? text.slice(0, CUT_BYTES) : text, 'latin1'),
    isCut,
  };
}

/** Deterministic by call id, so every node decides alike, also after a restart. */
function isSampled(callId: string, percent: number): boolean {
  return createHash('sha256').update(callId).digest().readUInt32BE() < (percent / 100) * 2 ** 32;
}

const MOST_MESSAGES = 500;
const MOST_BYTES = 1_000_000;
/** Fits into one IP packet of a capture file. */
const MOST_MESSAGE_BYTES = 65_000;
const CUT_BYTES = 1_000;
const MOST_CALLS = 20_000;
/** Drop messages beyond this: the database is too slow, and calls matter more. */
const MOST_WAITING = 10_000;
const BATCH = 500;
const WRITE_EVERY_MS = 250;
