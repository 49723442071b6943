import { FrameError, type JsonValue } from '../../runtime/frames.ts';
import { schemaCheck } from '../../runtime/schema-check.ts';
import { serveProcess } from '../../runtime/serve-process.ts';

/**
 * Calls that an engine implements. A thrown error becomes the answer, with its `code` if it has one. `emit` sends a
 * part of the answer to a caller of `stream` at once, even in the middle of a computation.
 */
export type EngineCalls = Record<
  string,
  (argument: unknown, body: Buffer, emit: (part: AnswerWithBytes) => void) => EngineAnswer | Promise<EngineAnswer>
>;

export type EngineAnswer = JsonValue | AnswerWithBytes;

/** Answer for `callForBytes`, and part of a stream. */
export class AnswerWithBytes {
  readonly value: JsonValue;
  /** At most `FRAME_LIMITS.bodyBytes`. */
  readonly bytes: Uint8Array;

  constructor(value: JsonValue, bytes: Uint8Array) {
    this.value = value;
    this.bytes = bytes;
  }
}

const Call = schemaCheck({
  type: 'object',
  required: ['id', 'call', 'argument'],
  properties: { id: { type: 'integer' }, call: { type: 'string' }, argument: {} },
});

/** Runs the child's end of an `EngineProcess`: creates the engine, answers calls in order, and exits with its owner. */
export function serveEngine(create: (argument: unknown) => EngineCalls | Promise<EngineCalls>): void {
  let calls: EngineCalls = {
    async load(argument) {
      calls = await create(argument);
      return null;
    },
  };
  serveProcess(async ({ messages, send }) => {
    for await (const { head, body } of messages) {
      if (!Call.matches(head)) throw new FrameError('not a call');
      const { id, call, argument } = head;
      const perform = Object.hasOwn(calls, call) ? calls[call] : undefined;
      if (perform === undefined) throw new FrameError(`no call is named ${call}`);
      try {
        const done = await perform(argument, body, ({ value, bytes }) => send({ id, part: value }, bytes));
        if (done instanceof AnswerWithBytes) send({ id, value: done.value }, done.bytes);
        else send({ id, value: done });
      } catch (error) {
        const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
        send({ id, error: { code, message: error instanceof Error ? error.message : String(error) } });
      }
    }
  });
}
