import type { MessagePort, Transferable } from 'node:worker_threads';
import type { CallTable, FromThread, ToThread } from './protocol.ts';

export interface AnsweredCalls<Calls extends CallTable<Calls>> {
  calls: CallHandlers<Calls>;
  /** Closes all that there is, before the thread is terminated. */
  drain: () => Promise<void>;
  /** Of an error that means something to the main thread; else null. */
  codeOf: (error: unknown) => string | null;
}

export type CallHandlers<Calls extends CallTable<Calls>> = {
  [Call in keyof Calls]: (request: Calls[Call]['request']) => Answer<Calls[Call]['answer']>;
};

type Answer<Value> = Value | Promise<Value | WithTransfer<Value>>;

/** An answer of which parts are moved to the other thread instead of copied. */
export class WithTransfer<Value> {
  readonly answer: Value;
  readonly transfer: readonly Transferable[];

  constructor(answer: Value, transfer: readonly Transferable[]) {
    this.answer = answer;
    this.transfer = transfer;
  }
}

/** The thread's end of an `EngineThread`: answers calls as they come, side by side. Afterwards `ready` is to be posted. */
export function answerCalls<Calls extends CallTable<Calls>>(
  port: MessagePort,
  { calls, drain, codeOf }: AnsweredCalls<Calls>,
): void {
  const post = (message: FromThread<never, never>, transfer: readonly Transferable[] = []): void =>
    port.postMessage(message, transfer);
  const handlers: Record<string, (request: never) => unknown> = {
    ...calls,
    'thread.ping': () => null,
    async 'thread.drain'() {
      await drain();
      return null;
    },
  };

  async function answer({ requestId, call, request }: ToThread): Promise<void> {
    try {
      const done = await handlers[call]!(request as never);
      if (done instanceof WithTransfer) post({ type: 'done', requestId, answer: done.answer }, done.transfer);
      else post({ type: 'done', requestId, answer: done });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      post({ type: 'failed', requestId, failure: { code: codeOf(error), message } });
    }
  }

  port.on('message', (message: ToThread) => void answer(message));
}
