import { describe, expect, it } from 'vitest';
import { createCallRegistry } from '../../actors/call-registry.ts';
import { callRow, liveCall, quiet } from './fakes.ts';

describe('call registry', () => {
  it('finds added calls', () => {
    const registry = createCallRegistry();
    const [one, other] = [liveCall(callRow()), liveCall(callRow())];
    registry.add(one);
    registry.add(other);
    expect(registry.get(one.row.callId)).toBe(one);
    expect(registry.get('no such call')).toBeUndefined();
    expect(registry.list()).toEqual([one, other]);
  });

  it('aborts only the signal of a removed call, once', () => {
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

  it('becomes idle at once when empty', async () => {
    await expect(createCallRegistry().idle()).resolves.toBeUndefined();
  });

  it('becomes idle when its last call leaves, and resolves all waiters', async () => {
    const registry = createCallRegistry();
    const [one, other] = [liveCall(callRow()), liveCall(callRow())];
    registry.add(one);
    registry.add(other);
    let resolved = 0;
    for (const idle of [registry.idle(), registry.idle()]) {
      void idle.then(() => {
        resolved += 1;
      });
    }
    registry.remove(one.row.callId);
    await quiet();
    expect(resolved).toBe(0);
    registry.remove(other.row.callId);
    await quiet();
    expect(resolved).toBe(2);
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
