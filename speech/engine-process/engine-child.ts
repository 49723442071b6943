import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants, getPriority, setPriority } from 'node:os';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { encodeMessage, FrameError, type JsonValue, readMessages } from './frames.ts';

/**
 * What an engine can be asked. An error that is thrown is the answer; its `code` crosses, if it has one. `tell` sends a
 * part of the answer at once, also in the middle of a computation, to whoever asked by `stream`.
 */
export type EngineCalls = Record<
  string,
  (argument: unknown, body: Buffer, tell: (part: AnswerWithBytes) => void) => EngineAnswer | Promise<EngineAnswer>
>;

export type EngineAnswer = JsonValue | AnswerWithBytes;

/** For `callForBytes`, and for parts. */
export class AnswerWithBytes {
  readonly value: JsonValue;
  /** At most `MOST_BODY_BYTES`. */
  readonly bytes: Uint8Array;

  constructor(value: JsonValue, bytes: Uint8Array) {
    this.value = value;
    this.bytes = bytes;
  }
}

const PIPE_FD = 3;

const Call = Compile(Type.Object({ id: Type.Integer(), call: Type.String(), argument: Type.Unknown() }));

/** The child's end of an `EngineProcess`: makes the engine, answers calls in order, and exits when its owner is gone. */
export function serveEngine(create: (argument: unknown) => EngineCalls | Promise<EngineCalls>): void {
  // Threads that the engine starts inherit it, and media threads of the owner run first.
  setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL));
  // Signals for the whole service are its owner's business: calls that are being drained still need this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  const pipe = new Socket({ fd: PIPE_FD, readable: true, writable: true });
  pipe.on('error', () => process.exit(0));
  void answerAll(pipe, create).then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`, () => process.exit(1));
    },
  );
}

async function answerAll(
  pipe: Socket,
  create: (argument: unknown) => EngineCalls | Promise<EngineCalls>,
): Promise<void> {
  let calls: EngineCalls = {
    async load(argument) {
      calls = await create(argument);
      return null;
    },
  };
  for await (const { head, body } of readMessages(pipe)) {
    if (!Call.Check(head)) throw new FrameError('not a call');
    for (const part of await answer(calls, head, body)) writeNow(part);
  }
}

/** Streams write when the thread is idle, which an engine that computes is not. Waits where the owner does not read. */
function writeNow(bytes: Buffer): void {
  for (let written = 0; written < bytes.byteLength; ) {
    try {
      written += writeSync(PIPE_FD, bytes, written);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EAGAIN') Atomics.wait(NOBODY, 0, 0, WRITE_AGAIN_MS);
      else if (code === 'EPIPE' || code === 'ECONNRESET') process.exit(0);
      else throw error;
    }
  }
}

const NOBODY = new Int32Array(new SharedArrayBuffer(4));
const WRITE_AGAIN_MS = 1;

async function answer(
  calls: EngineCalls,
  { id, call, argument }: { id: number; call: string; argument: unknown },
  body: Buffer,
): Promise<Buffer[]> {
  const perform = Object.hasOwn(calls, call) ? calls[call] : undefined;
  if (perform === undefined) throw new FrameError(`no call is named ${call}`);
  try {
    const done = await perform(argument, body, ({ value, bytes }) => {
      for (const part of encodeMessage({ id, part: value }, bytes)) writeNow(part);
    });
    return done instanceof AnswerWithBytes
      ? encodeMessage({ id, value: done.value }, done.bytes)
      : encodeMessage({ id, value: done });
  } catch (error) {
    const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
    return encodeMessage({ id, error: { code, message: error instanceof Error ? error.message : String(error) } });
  }
}
