import { setTimeout as delay } from 'node:timers/promises';
import { AnswerWithBytes, serveEngine } from '../../../speech/engine-process/engine-child.ts';

interface Asked {
  parts: number;
  partBytes?: number;
  holdMs?: number;
  fail?: boolean;
}

/** A child that answers in parts while it computes, as its argument says. */
serveEngine(() => ({
  async count(argument, _, tell) {
    const { parts, partBytes = 0, holdMs = 0, fail = false } = argument as Asked;
    for (let part = 0; part < parts; part++) tell(new AnswerWithBytes(part, Buffer.alloc(partBytes, part)));
    // The event loop turns for nobody meanwhile: what was told is gone out all the same.
    if (holdMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, holdMs);
    if (fail) throw Object.assign(new Error('it broke'), { code: 'broken' });
    return null;
  },
  async late() {
    await delay(5);
    return 'late';
  },
}));
