import { describe, expect, it } from 'vitest';
import {
  type CallEvent,
  type CallProgress,
  farLegOf,
  holdLegOf,
  NO_PROGRESS,
  progressAfter,
} from '../../console/phone/call-progress.ts';
import { qualityBetween } from '../../console/phone/quality.ts';

const AT = '2026-01-31T09:30:00.000Z';
const TARGET = 'leg_5f0c7a1e-2b8d-4f6a-9f58-2f0d3f6f1b21';

function progressOf(...events: Partial<CallEvent>[]): CallProgress {
  return events.reduce<CallProgress>(
    (progress, event, i) =>
      progressAfter(progress, {
        ...{ sequence: i + 1, event: '', leg: null, hangup_cause: null, at: AT, data: null },
        ...event,
      }),
    NO_PROGRESS,
  );
}

const bridged = { event: 'call.bridged' };
const started = (mode: string) => ({
  event: 'transfer.started',
  data: { leg_id: TARGET, replaces: 'agent', mode },
});

describe('the progress of a call in the phone', () => {
  it('follows the customer until both talk', () => {
    expect(progressOf({ event: 'customer.dialing', leg: 'customer' }).stage).toBe('dialing');
    expect(progressOf({ event: 'customer.ringing', leg: 'customer' }).stage).toBe('ringing');
    expect(progressOf(bridged)).toMatchObject({ stage: 'talking', talkingSince: AT });
  });

  it('notes each leg on hold once, and forgets it when it resumes or leaves', () => {
    const held = { event: 'call.held', leg: 'customer' } as const;
    expect(progressOf(bridged, held, held).heldLegs).toEqual(['customer']);
    expect(progressOf(held, { event: 'call.resumed', leg: 'customer' }).heldLegs).toEqual([]);
    const party = { data: { leg_id: TARGET } };
    expect(progressOf({ event: 'call.held', ...party }, { event: 'leg.left', ...party }).heldLegs).toEqual([]);
  });

  it('knows when the target of a transfer has answered, and gives it the place of the leg', () => {
    const joined = { event: 'leg.joined', data: { leg_id: TARGET } };
    expect(progressOf(started('attended')).transfer).toEqual({ legId: TARGET, mode: 'attended', isAnswered: false });
    expect(progressOf(started('attended'), joined).transfer).toMatchObject({ isAnswered: true });
    const completed = { event: 'transfer.completed', data: { leg_id: TARGET, replaces: 'agent' } };
    const transferred = progressOf(started('blind'), joined, completed);
    expect(transferred).toMatchObject({ transfer: null, places: { agent: TARGET, customer: 'customer' } });
    expect(farLegOf(transferred, TARGET)).toBe('customer');
    expect(farLegOf(transferred, 'customer')).toBe(TARGET);
  });

  it('reports a transfer that failed, but not one that was cancelled', () => {
    expect(progressOf(started('blind'), { event: 'transfer.failed' })).toMatchObject({
      transfer: null,
      hasTransferFailed: true,
    });
    expect(progressOf(started('blind'), { event: 'transfer.cancelled' }).hasTransferFailed).toBe(false);
  });

  it('holds the other party, or this leg in a conference', () => {
    expect(holdLegOf(NO_PROGRESS, 'agent')).toBe('customer');
    expect(holdLegOf(NO_PROGRESS, 'customer')).toBe('agent');
    expect(holdLegOf(NO_PROGRESS, TARGET)).toBe(TARGET);
  });

  it('keeps how the call ended, and ignores events that it does not know', () => {
    const ended = { event: 'call.not_answered', hangup_cause: 'NO_ANSWER' };
    expect(progressOf(ended).outcome).toEqual({ hangupCause: 'NO_ANSWER', at: AT });
    expect(progressOf({ event: 'toString' }, { event: 'transcript.final' })).toEqual(NO_PROGRESS);
  });
});

describe('the network quality in the phone', () => {
  const before = { received: 100, lost: 2, jitterMs: 0, roundTripMs: null };

  it('grades loss, jitter and round trip by the worst of them', () => {
    const now = { received: 200, lost: 2, jitterMs: 5, roundTripMs: 20 };
    expect(qualityBetween(before, now)).toEqual({ grade: 'good', loss: 0, jitterMs: 5, roundTripMs: 20 });
    expect(qualityBetween(before, { ...now, jitterMs: 30 })).toMatchObject({ grade: 'fair' });
    expect(qualityBetween(before, { ...now, roundTripMs: 500 })).toMatchObject({ grade: 'poor' });
    expect(qualityBetween(before, { ...now, received: 190, lost: 12 })).toMatchObject({ grade: 'poor', loss: 0.1 });
  });

  it('measures nothing where nothing was expected, and no negative loss', () => {
    expect(qualityBetween(before, before)).toBeNull();
    const late = { ...before, received: 150, lost: 0 };
    expect(qualityBetween(before, late)).toMatchObject({ loss: 0 });
  });
});
