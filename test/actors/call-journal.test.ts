import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCallJournal } from '../../actors/call-journal.ts';
import type { CallMove } from '../../machines/call-events.ts';
import type { CallSegment } from '../../machines/events.ts';
import type { Sql } from '../../storage/database.ts';
import {
  type CallEventRow,
  type CallRow,
  getCallById,
  listCallEvents,
  markOrphansUnknown,
} from '../../storage/queries/calls.ts';
import { getRecording } from '../../storage/queries/recordings.ts';
import { getTranscript } from '../../storage/queries/transcripts.ts';
import { eventually } from '../eventually.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestClock, createTestLogger, sqlWithFaults } from './fakes.ts';
import { seedCaller } from './seeds.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('call journal', () => {
  it('stores moves in order with their times', async () => {
    const { journal, clock, events } = await openJournal();
    journal.append(move('call.initiated'));
    clock.advance(1_500);
    journal.append(move('agent.ringing'));
    clock.advance(2_000);
    journal.append(move('call.bridged', { state: 'bridged' }));
    await journal.drained();
    expect((await events()).map(({ event, sequence, at }) => [event, sequence, at.getTime() - NOW.getTime()])).toEqual([
      ['call.pending', 1, 0],
      ['call.initiated', 2, 0],
      ['agent.ringing', 3, 1_500],
      ['call.bridged', 4, 3_500],
    ]);
  });

  it('updates the call row with the last move, and records the bridge time', async () => {
    const { journal, clock, row } = await openJournal();
    expect(journal.bridgedAt()).toBeNull();
    clock.advance(9_000);
    journal.append(move('call.bridged', { state: 'bridged' }));
    await journal.drained();
    const bridgedAt = new Date(NOW.getTime() + 9_000);
    expect(journal.bridgedAt()?.at).toEqual(bridgedAt);
    expect(await row()).toMatchObject({ state: 'bridged', answerTime: bridgedAt, seq: 2 });
  });

  it('batches moves that arrive during a transaction', async () => {
    const gate = Promise.withResolvers<void>();
    let transactions = 0;
    const { journal, committed } = await openJournal({
      begin: async (run) => {
        transactions += 1;
        if (transactions === 1) await gate.promise;
        return await run();
      },
    });
    for (const event of ['call.initiated', 'agent.ringing', 'agent.answered', 'customer.dialing']) {
      journal.append(move(event));
    }
    gate.resolve();
    await journal.drained();
    expect(transactions).toBe(2);
    expect(committed).toEqual([['call.initiated'], ['agent.ringing', 'agent.answered', 'customer.dialing']]);
  });

  it('drains only after later moves are stored too', async () => {
    const gate = Promise.withResolvers<void>();
    let transactions = 0;
    const { journal, events } = await openJournal({
      begin: async (run) => {
        transactions += 1;
        if (transactions === 2) await gate.promise;
        return await run();
      },
    });
    journal.append(move('call.initiated'));
    const drained = journal.drained();
    journal.append(move('agent.ringing'));
    await eventually(() => expect(transactions).toBe(2));
    gate.resolve();
    await drained;
    expect((await events()).map(({ event }) => event)).toEqual(['call.pending', 'call.initiated', 'agent.ringing']);
  });

  it('drains at once when empty', async () => {
    const { journal } = await openJournal();
    await expect(journal.drained()).resolves.toBeUndefined();
  });

  it('retries until storage returns, and keeps the times of moves', async () => {
    let failuresLeft = 6;
    const { journal, clock, events, logger, committed } = await openJournal({
      begin: async (run) => {
        failuresLeft -= 1;
        if (failuresLeft >= 0) throw new Error('storage is away');
        return await run();
      },
    });
    journal.append(move('call.initiated'));
    for (const delayMs of [50, 200, 1_000, 5_000, 5_000, 5_000]) {
      await eventually(() => expect(clock.waiting()).toEqual([delayMs]));
      if (delayMs === 200) journal.append(move('agent.ringing'));
      clock.advance(delayMs);
    }
    await journal.drained();
    expect(logger.messages('error')).toHaveLength(6);
    expect(committed).toEqual([['call.initiated'], ['agent.ringing']]);
    expect((await events()).map(({ event, at }) => [event, at.getTime() - NOW.getTime()])).toEqual([
      ['call.pending', 0],
      ['call.initiated', 0],
      ['agent.ringing', 50],
    ]);
  });

  it('stores moves once when the response to a commit is lost', async () => {
    let transactions = 0;
    const { journal, clock, events, committed, row } = await openJournal({
      begin: async (run) => {
        const result = await run();
        transactions += 1;
        if (transactions === 1) throw new Error('the connection was lost after the commit');
        return result;
      },
    });
    const recordingId = randomUUID();
    journal.append(move('recording.started', { state: 'bridged', recordingId }));
    await eventually(() => expect(clock.waiting()).toEqual([50]));
    clock.advance(50);
    journal.append(move('customer.media', { state: 'bridged' }));
    await journal.drained();
    expect((await events()).map(({ event }) => event)).toEqual(['call.pending', 'recording.started', 'customer.media']);
    expect(committed).toEqual([['recording.started'], ['customer.media']]);
    expect(await row()).toMatchObject({ recordingId, seq: 3 });
  });

  it('stores moves once when a commit listener throws', async () => {
    const { journal, events, logger } = await openJournal({
      onCommitted: () => {
        throw new Error('a watcher broke');
      },
    });
    journal.append(move('call.initiated'));
    await journal.drained();
    journal.append(move('agent.ringing'));
    await journal.drained();
    expect((await events()).map(({ event }) => event)).toEqual(['call.pending', 'call.initiated', 'agent.ringing']);
    expect(logger.messages('error')).toHaveLength(2);
  });

  it('stops retrying when the call aborts, and leaves no timer', async () => {
    const { journal, clock, abort, events } = await openJournal({
      begin: async () => {
        throw new Error('storage is away');
      },
    });
    journal.append(move('call.initiated'));
    await eventually(() => expect(clock.waiting()).toEqual([50]));
    const drained = journal.drained();
    abort.abort();
    await drained;
    expect(clock.waiting()).toEqual([]);
    expect((await events()).map(({ event }) => event)).toEqual(['call.pending']);
  });

  it('drains even if a move arrives after the abort', async () => {
    const { journal, abort, events } = await openJournal();
    abort.abort();
    journal.append(move('agent.ringing'));
    // A promise loop that never drains would block the event loop.
    const drained = journal.drained();
    await drained;
    expect((await events()).map(({ event }) => event)).toEqual(['call.pending']);
  });

  it('inserts the recording row together with its move', async () => {
    const { journal, clock, row, call } = await openJournal();
    const recordingId = randomUUID();
    expect(journal.recordingId()).toBeNull();
    clock.advance(700);
    journal.append(move('recording.started', { state: 'bridged', recordingId }));
    await journal.drained();
    expect(journal.recordingId()).toBe(recordingId);
    expect(await row()).toMatchObject({ recordingId, recordingStatus: 'recording' });
    expect(await getRecording(database.sql, recordingId)).toMatchObject({
      callId: call.callId,
      workspaceId: call.workspaceId,
      status: 'recording',
      createdAt: new Date(NOW.getTime() + 700),
    });
  });

  it('drops moves of a final call with a warning, and notifies no watcher', async () => {
    const { lost, journal, events, committed, logger, call } = await openJournal();
    await database.sql`update calls set state = 'failed' where call_id = ${call.callId}`;
    journal.append(move('agent.ringing'));
    await journal.drained();
    expect((await events()).map(({ event }) => event)).toEqual(['call.pending']);
    expect(committed).toEqual([]);
    expect(logger.lines).toMatchObject([{ level: 'warn', fields: { callId: call.callId } }]);
    expect(lost()).toBe(1);
  });
});

describe('call journal whose transcript cannot be stored', () => {
  const said = (segment: Partial<CallSegment> = {}): CallMove =>
    move('transcript.final', {
      state: 'bridged',
      leg: 'agent',
      segment: {
        leg: 'agent',
        utteranceId: 1,
        text: 'hello',
        language: 'en',
        startMs: 0,
        endMs: 1_000,
        confidence: null,
        words: [],
        ...segment,
      },
    });

  it('stores the other moves and fails the transcript once', async () => {
    const { journal, clock, events, committed, call } = await openJournal();
    journal.append(move('call.bridged', { state: 'bridged' }));
    journal.append(move('transcript.started', { state: 'bridged' }));
    journal.append(said());
    journal.append(said({ utteranceId: 2, startMs: Number.NaN }));
    journal.append(move('customer.media', { state: 'bridged' }));
    journal.append(said({ utteranceId: 3 }));
    for (const delayMs of [50, 200, 1_000]) {
      await eventually(() => expect(clock.waiting()).toEqual([delayMs]));
      clock.advance(delayMs);
    }
    await journal.drained();
    expect((await events()).map(({ event, detail }) => [event, detail])).toEqual([
      ['call.pending', null],
      ['call.bridged', null],
      ['transcript.started', null],
      ['transcript.final', null],
      ['transcript.failed', 'INTERNAL'],
      ['customer.media', null],
    ]);
    expect(committed.flat()).toContain('transcript.failed');
    const stored = await getTranscript(database.sql, call.callId);
    expect(stored?.transcript).toMatchObject({ status: 'failed', error: 'INTERNAL' });
    expect(stored?.segments.map(({ text }) => text)).toEqual(['hello']);
  });

  it('skips the transcript when even its failure cannot be stored', async () => {
    const { journal, clock, events, call } = await openJournal();
    await database.sql.unsafe(`alter table call_transcripts add check (call_id <> '${call.callId}')`);
    journal.append(move('transcript.started', { state: 'bridged' }));
    journal.append(move('customer.media', { state: 'bridged' }));
    for (const delayMs of [50, 200, 1_000, 5_000, 5_000, 5_000]) {
      await eventually(() => expect(clock.waiting()).toEqual([delayMs]));
      clock.advance(delayMs);
    }
    await journal.drained();
    expect((await events()).map(({ event }) => event)).toEqual(['call.pending', 'customer.media']);
  });
});

describe('call journal after a takeover by another boot', () => {
  it('stores nothing more and reports the call as lost', async () => {
    const { journal, call, events, lost, committed } = await openJournal();
    await markOrphansUnknown(database.sql, {
      lost: { node: call.ownerNode, exceptBoot: 'the next boot' },
      owner: { node: call.ownerNode, boot: 'the next boot' },
      seenAt: null,
      now: NOW,
    });
    journal.append(move('agent.ringing'));
    await journal.drained();
    expect((await events()).map(({ event }) => event)).toEqual(['call.pending', 'call.unknown']);
    expect(committed).toEqual([]);
    expect(lost()).toBe(1);
  });
});

async function openJournal({
  begin,
  onCommitted,
}: {
  begin?: (run: () => Promise<unknown>) => Promise<unknown>;
  onCommitted?: () => void;
} = {}) {
  const sql: Sql = database.sql;
  const call: CallRow = await (await seedCaller(sql)).admit();
  const clock = createTestClock();
  const logger = createTestLogger();
  const abort = new AbortController();
  const committed: string[][] = [];
  let lost = 0;
  const journal = openCallJournal({
    sql: begin ? sqlWithFaults(sql, begin) : sql,
    callId: call.callId,
    boot: call.ownerBoot,
    endpointOf: () => null,
    lastSequence: call.seq,
    clock,
    logger,
    signal: abort.signal,
    onDeliveries: () => {},
    onCommitted: (events: CallEventRow[]) => {
      committed.push(events.map(({ event }) => event));
      onCommitted?.();
    },
    onLost: () => {
      lost += 1;
    },
  });
  return {
    call,
    journal,
    clock,
    logger,
    abort,
    committed,
    lost: () => lost,
    events: () => listCallEvents(sql, { callId: call.callId }),
    row: () => getCallById(sql, call.callId),
  };
}

function move(event: string, more: Partial<CallMove> = {}): CallMove {
  const nothing = {
    leg: null,
    sipStatus: null,
    hangupCause: null,
    detail: null,
    recordingId: null,
    segment: null,
    data: null,
  };
  return { event, state: 'initiated', ...nothing, ...more };
}
