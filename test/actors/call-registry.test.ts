import { describe, expect, it } from 'vitest';
import { createCallRegistry } from '../../actors/call-registry.ts';
import { callRow, liveCall, quiet } from './fakes.ts';

describe('the call registry', () => {
  it('finds the calls it was given', () => {
    const registry = createCallRegistry();
    const [one, other] = [liveCall(callRow()), liveCall(callRow())];
    registry.add(one);
    registry.add(other);
    expect(registry.get(one.row.callId)).toBe(one);
    expect(registry.get('no such call')).toBeUndefined();
    expect(registry.list()).toEqual([one, other]);
  });

  it('aborts the signal of a call it forgets, once and no other', () => {
    const registry = createCallRegistry();
    const [one, other] = [liveCall(callRow()), liveCall(callRow())];
    registry.add(one);
    registry.add(other);
    let aborted = 0;
    one.abort.signal.addEventListener('abort', () => {
      aborted += 1;
    });
    registry.remove(one.row.callId);
    registry.remove(one.row.callId);
    expect(aborted).toBe(1);
    expect(other.abort.signal.aborted).toBe(false);
    expect(registry.get(one.row.callId)).toBeUndefined();
  });

  it('is idle at once when it is empty', async () => {
    await expect(createCallRegistry().idle()).resolves.toBeUndefined();
  });

  it('is idle when its last call has left, and tells everybody who waits for that', async () => {
    const registry = createCallRegistry();
    const [one, other] = [liveCall(callRow()), liveCall(callRow())];
    registry.add(one);
    registry.add(other);
    let told = 0;
    for (const idle of [registry.idle(), registry.idle()]) {
      void idle.then(() => {
        told += 1;
      });
    }
    registry.remove(one.row.callId);
    await quiet();
    expect(told).toBe(0);
    registry.remove(other.row.callId);
    await quiet();
    expect(told).toBe(2);
  });

  it('can become idle again after more calls', async () => {
    const registry = createCallRegistry();
    for (let round = 0; round < 2; round += 1) {
      const call = liveCall(callRow());
      registry.add(call);
      const idle = registry.idle();
      registry.remove(call.row.callId);
      await expect(idle).resolves.toBeUndefined();
    }
  });
});
