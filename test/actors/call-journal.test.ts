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

describe('the journal of a call', () => {
  it('stores moves in the order they happened, each with the moment it happened', async () => {
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

  it('keeps the row of the call in step with the last move and notes when it was bridged', async () => {
    const { journal, clock, row } = await openJournal();
    expect(journal.bridgedAt()).toBeNull();
    clock.advance(9_000);
    journal.append(move('call.bridged', { state: 'bridged' }));
    await journal.drained();
    const bridgedAt = new Date(NOW.getTime() + 9_000);
    expect(journal.bridgedAt()?.at).toEqual(bridgedAt);
    expect(await row()).toMatchObject({ state: 'bridged', answerTime: bridgedAt, seq: 2 });
  });

  it('lets moves that pile up while a transaction runs share the next one', async () => {
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

  it('is drained only when what was appended in the meantime is stored too', async () => {
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

  it('is drained at once when nothing was appended', async () => {
    const { journal } = await openJournal();
    await expect(journal.drained()).resolves.toBeUndefined();
  });

  it('loses nothing while storage is away: it tries again until it succeeds, and moments stay as they were', async () => {
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

  it('does not store moves twice when the answer to their commit is lost', async () => {
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

  it('does not store moves twice because somebody who was told of them throws', async () => {
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

  it('gives up when the call is aborted, in the middle of a wait, and leaves no timer behind', async () => {
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

  it('is drained, too, when something is appended after the call was aborted', async () => {
    const { journal, abort, events } = await openJournal();
    abort.abort();
    journal.append(move('agent.ringing'));
    // A journal that never gets there would keep every other thing of this process from running, timers included.
    const drained = journal.drained();
    await drained;
    expect((await events()).map(({ event }) => event)).toEqual(['call.pending']);
  });

  it('makes the row of a recording together with its move', async () => {
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

  it('drops the moves of a call that is final already, with a warning, and tells nobody', async () => {
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

describe('the journal of a call whose transcript storage does not take', () => {
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

  it('stores the other moves and fails the transcript, once', async () => {
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

  it('leaves the transcript out when not even its failure is taken', async () => {
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

describe('the journal of a call that another boot has taken over', () => {
  it('adds nothing to its log and says that the call is lost', async () => {
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
