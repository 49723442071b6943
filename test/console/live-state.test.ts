import { describe, expect, it } from 'vitest';
import type { CallEvent } from '../../console/call/call-data.ts';
import type { LiveCall, LiveNews, Spoken } from '../../console/live/live-data.ts';
import { type LiveState, NOTHING, stateAfter } from '../../console/live/live-state.ts';
import { partial } from '../partial.ts';

describe('the state of the live calls', () => {
  it('begins with a snapshot', () => {
    const state = stateAfter(NOTHING, [snapshot([call('a'), call('b')])]);
    expect(state.isReady).toBe(true);
    expect([...state.calls.keys()]).toEqual(['a', 'b']);
  });

  it('takes a new call, its moves and its end', () => {
    let state = stateAfter(NOTHING, [snapshot([]), moved(call('a', { sequence: 1, state: 'pending' }))]);
    expect(state.calls.get('a')?.call.state).toBe('pending');
    state = stateAfter(state, [moved(call('a', { sequence: 4, state: 'bridged' }))]);
    expect(state.calls.get('a')?.call.state).toBe('bridged');
    state = stateAfter(state, [moved(call('a', { sequence: 9, state: 'completed', call_done: true }))]);
    expect(state.calls.size).toBe(0);
    expect(state.ended.map(({ call_id: id }) => id)).toEqual(['a']);
  });

  it('ignores events that come again, also after the end of the call', () => {
    const bridged = moved(call('a', { sequence: 4, state: 'bridged' }));
    const dialing = moved(call('a', { sequence: 2, state: 'initiated' }));
    const done = moved(call('a', { sequence: 9, state: 'completed', call_done: true }));
    const state = stateAfter(NOTHING, [snapshot([]), bridged, dialing]);
    expect(state.calls.get('a')?.call.state).toBe('bridged');
    const after = stateAfter(state, [done, bridged, done]);
    expect(after.calls.size).toBe(0);
    expect(after.ended).toHaveLength(1);
  });

  it('keeps levels, quality and words of a call through its moves and through a new snapshot', () => {
    const state = stateAfter(NOTHING, [
      snapshot([call('a')]),
      { type: 'level', data: { call_id: 'a', legs: [{ leg: 'agent', level_dbov: -20, speaking: true }] } },
      { type: 'level', data: { call_id: 'a', legs: [{ leg: 'customer', level_dbov: -60, speaking: false }] } },
      { type: 'transcript', data: spoken({ text: 'hello' }) },
      moved(call('a', { sequence: 2 })),
      snapshot([call('a', { sequence: 3 })]),
    ]);
    const entry = state.calls.get('a');
    expect(entry?.levels.agent?.level_dbov).toBe(-20);
    expect(entry?.levels.customer?.speaking).toBe(false);
    expect(entry?.spoken.map(({ text }) => text)).toEqual(['hello']);
    expect(entry?.call.sequence).toBe(3);
  });

  it('counts calls as ended that a later snapshot lacks, unless it is truncated', () => {
    const before = stateAfter(NOTHING, [snapshot([call('a'), call('b')])]);
    expect(stateAfter(before, [snapshot([call('b')])]).ended.map(({ call_id: id }) => id)).toEqual(['a']);
    expect(stateAfter(before, [snapshot([call('b')], true)]).ended).toEqual([]);
  });

  it('replaces what a leg is saying until the segment is final', () => {
    const say = (state: LiveState, segment: Partial<Spoken>) =>
      stateAfter(state, [{ type: 'transcript', data: spoken(segment) }]);
    const textsOf = (state: LiveState) => state.calls.get('a')?.spoken.map(({ text }) => text);
    let state = stateAfter(NOTHING, [snapshot([call('a')])]);
    state = say(state, { text: 'how', is_final: false, start: 1, end: 1.4 });
    state = say(state, { text: 'how are', is_final: false, start: 1, end: 1.8 });
    expect(textsOf(state)).toEqual(['how are']);
    state = say(state, { text: 'fine', leg: 'customer', is_final: false, start: 1.5, end: 1.9 });
    state = say(state, { text: 'how are you', start: 1, end: 2 });
    expect(textsOf(state)).toEqual(['how are you', 'fine']);
    // A hypothesis that was overtaken by the segment.
    state = say(state, { text: 'how are yo', is_final: false, start: 1, end: 1.9 });
    expect(textsOf(state)).toEqual(['how are you', 'fine']);
    state = say(state, { text: 'how are you', start: 1, end: 2 });
    expect(textsOf(state)).toEqual(['how are you', 'fine']);
  });

  it('shows what a leg is saying also after a final segment when the engine reports no times', () => {
    const state = stateAfter(NOTHING, [
      snapshot([call('a')]),
      { type: 'transcript', data: spoken({ text: 'how are you', start: 1, end: 2 }) },
      { type: 'transcript', data: spoken({ text: 'fine', is_final: false, start: null, end: null }) },
      { type: 'transcript', data: spoken({ text: 'fine thanks', is_final: false, start: null, end: null }) },
    ]);
    expect(state.calls.get('a')?.spoken.map(({ text }) => text)).toEqual(['how are you', 'fine thanks']);
  });

  it('follows a transfer from its start to its end', () => {
    const event = (name: string) => [partial<CallEvent>({ event: name, data: { leg_id: 'leg_3' } })];
    const state = stateAfter(NOTHING, [
      snapshot([call('a')]),
      { type: 'call', data: { call: call('a', { sequence: 2 }), events: event('transfer.started') } },
    ]);
    expect(state.calls.get('a')?.transferTarget).toBe('leg_3');
    const after = stateAfter(state, [
      { type: 'call', data: { call: call('a', { sequence: 3 }), events: event('transfer.completed') } },
    ]);
    expect(after.calls.get('a')?.transferTarget).toBeNull();
  });

  it('leaves the state before as it was', () => {
    const before = stateAfter(NOTHING, [snapshot([call('a')])]);
    const copy = structuredClone(before);
    stateAfter(before, [
      moved(call('a', { sequence: 9, state: 'completed', call_done: true })),
      { type: 'transcript', data: spoken({ text: 'hello' }) },
    ]);
    expect(before).toEqual(copy);
  });

  it('ignores news of calls that it does not know', () => {
    const state = stateAfter(NOTHING, [
      { type: 'level', data: { call_id: 'a', legs: [] } },
      { type: 'transcript', data: spoken({ text: 'hello' }) },
    ]);
    expect(state.calls.size).toBe(0);
  });
});

function call(id: string, fields: Partial<LiveCall> = {}): LiveCall {
  return { call_id: id, sequence: 1, state: 'initiated', call_done: false, legs: [], ...fields } as LiveCall;
}

function snapshot(calls: LiveCall[], truncated = false): LiveNews {
  const unsent = { metadata: null, callback_url: null, callback_secret_last4: null };
  return { type: 'snapshot', data: { calls: calls.map((each) => ({ ...each, ...unsent })), truncated } };
}

function moved(changed: LiveCall): LiveNews {
  return { type: 'call', data: { call: changed, events: [] } };
}

function spoken(fields: Partial<Spoken>): Spoken {
  return { call_id: 'a', leg: 'agent', role: 'agent', is_final: true, text: '', start: 0, end: 1, ...fields };
}
