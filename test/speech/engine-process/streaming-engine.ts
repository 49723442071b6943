import { setTimeout as delay } from 'node:timers/promises';
import { AnswerWithBytes, serveEngine } from '../../../speech/engine-process/engine-child.ts';

interface Asked {
  parts: number;
  partBytes?: number;
  holdMs?: number;
  fail?: boolean;
}

/** An engine that streams parts while it computes. */
serveEngine(() => ({
  async count(argument, _, send) {
    const { parts, partBytes = 0, holdMs = 0, fail = false } = argument as Asked;
    for (let part = 0; part < parts; part++) send(new AnswerWithBytes(part, Buffer.alloc(partBytes, part)));
    // Blocks the event loop: parts must have left the process already.
    if (holdMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, holdMs);
    if (fail) throw Object.assign(new Error('it broke'), { code: 'broken' });
    return null;
  },
  async late() {
    await delay(5);
    return 'late';
  },
}));
