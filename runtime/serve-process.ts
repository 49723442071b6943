import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import { encodeMessage, type FrameLimits, type JsonValue, type Message, readMessages } from './frames.ts';

interface OwnerPipe {
  /** Ends when the owner is gone. */
  messages: AsyncIterable<Message>;
  /** Sends at once, also in the middle of a computation. Waits while the owner does not read. */
  send: (head: JsonValue, body?: Uint8Array) => void;
}

interface ServeOptions {
  limits?: FrameLimits;
  /** Ends this process. Default `process.exit`. */
  leave?: (code: number) => void;
}

const PIPE_FD = 3;
/** A third of the CPU time of its owner when both want all of it. With 10, engines starve beside a busy program. */
const NICENESS = 5;
const LOWEST_PRIORITY = 19;

/**
 * The child's end of a `SupervisedProcess`: exits when `serve` is done or its owner is gone. It has a lower priority than
 * its owner, because telephony cannot wait.
 */
export function serveProcess(
  serve: (pipe: OwnerPipe) => Promise<void>,
  { limits, leave = (code) => process.exit(code) }: ServeOptions = {},
): void {
  // Threads that a library starts inherit it.
  setPriority(Math.min(LOWEST_PRIORITY, getPriority() + NICENESS));
  // Signals for the whole service are its owner's business: calls that are being drained still need this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  const pipe = new Socket({ fd: PIPE_FD, readable: true, writable: true });
  pipe.on('error', () => leave(0));
  const send = (head: JsonValue, body?: Uint8Array): void => {
    for (const part of encodeMessage(head, body, limits)) writeNow(part, leave);
  };
  // When `serve` fails, the pipe stays open until the exit: its end would make the owner kill this process at once.
  const chunks = pipe.iterator({ destroyOnReturn: false });
  serve({ messages: readMessages(chunks, limits), send }).then(
    () => leave(0),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`, () => leave(1));
    },
  );
}

/** Streams write when the thread is idle, which a library that computes is not. */
function writeNow(bytes: Buffer, leave: (code: number) => void): void {
  for (let written = 0; written < bytes.byteLength; ) {
    try {
      written += writeSync(PIPE_FD, bytes, written);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EAGAIN') Atomics.wait(NOBODY, 0, 0, WRITE_AGAIN_MS);
      else if (code !== 'EPIPE' && code !== 'ECONNRESET') throw error;
      else {
        leave(0);
        return;
      }
    }
  }
}

const NOBODY = new Int32Array(new SharedArrayBuffer(4));
const WRITE_AGAIN_MS = 1;
