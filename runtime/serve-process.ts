import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { encodeMessage, type FrameLimits, type JsonValue, type Message, readMessages } from './frames.ts';
import { addNiceness } from './priority.ts';

interface OwnerPipe {
  /** Ends when the owner is gone. */
  messages: AsyncIterable<Message>;
  /** Sends synchronously, even during a computation. Blocks while the owner does not read. */
  send: (head: JsonValue, body?: Uint8Array) => void;
}

interface ServeOptions {
  limits?: FrameLimits;
  /** Ends this process. Default `process.exit`. */
  leave?: (code: number) => void;
}

const PIPE_FD = 3;
/** Gives it a third of the owner's CPU time under contention. With 10, engines starve beside a busy program. */
const NICENESS = 5;

/**
 * The child's end of a `SupervisedProcess`. Exits when `serve` is done or the owner is gone. Runs at a lower priority,
 * because telephony cannot wait.
 */
export function serveProcess(
  serve: (pipe: OwnerPipe) => Promise<void>,
  { limits, leave = (code) => process.exit(code) }: ServeOptions = {},
): void {
  // Before a library starts threads, which inherit it.
  addNiceness(NICENESS);
  // Ignore signals, which are the owner's business: calls that are being drained still need this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  const pipe = new Socket({ fd: PIPE_FD, readable: true, writable: true });
  pipe.on('error', () => leave(0));
  const send = (head: JsonValue, body?: Uint8Array): void => {
    for (const part of encodeMessage(head, body, limits)) writeNow(part, leave);
  };
  // If `serve` fails, the pipe stays open until the exit: closing it would make the owner kill this process at once.
  const chunks = pipe.iterator({ destroyOnReturn: false });
  serve({ messages: readMessages(chunks, limits), send }).then(
    () => leave(0),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`, () => leave(1));
    },
  );
}

/** Writes synchronously, because streams write only when the thread is idle. */
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
