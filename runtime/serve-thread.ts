import { parentPort, type Transferable, workerData } from 'node:worker_threads';
import {
  type AnswerOf,
  type CallName,
  DRAIN,
  DUMP,
  type FromThread,
  PING,
  type RequestOf,
  type ThreadFailure,
  type ThreadProtocol,
  type ToThread,
} from './thread-protocol.ts';

export interface ServedThread<P extends ThreadProtocol> {
  ready: P['ready'];
  calls: CallHandlers<P>;
  notice?: (notice: P['notices']) => void;
  /** Diagnostics. */
  dump?: () => unknown;
  /** Closes all resources before the owner ends the thread. */
  drain?: () => unknown;
  /** Converts an error for the owner. Default: its `code`, if that is a string, and its message. */
  failureOf?: (error: unknown, call: string) => ThreadFailure;
}

type CallHandlers<P extends ThreadProtocol> = {
  [Call in CallName<P>]: Handler<RequestOf<P, Call>, AnswerOf<P, Call>>;
};

type Handler<Request, Answer> = [Answer] extends [undefined]
  ? (request: Request) => void | Promise<void>
  : (request: Request) => Answer | WithTransfer<Answer> | Promise<Answer | WithTransfer<Answer>>;

/** An answer with parts that are transferred instead of copied. */
export class WithTransfer<Value> {
  readonly answer: Value;
  readonly transfer: readonly Transferable[];

  constructor(answer: Value, transfer: readonly Transferable[]) {
    this.answer = answer;
    this.transfer = transfer;
  }
}

interface ThreadOwner<P extends ThreadProtocol> {
  data: P['data'];
  report: (report: P['reports']) => void;
}

/** The thread's end of a `SupervisedThread`. Handles calls concurrently. */
export async function serveThread<P extends ThreadProtocol>(
  create: (owner: ThreadOwner<P>) => ServedThread<P> | Promise<ServedThread<P>>,
): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error('this module runs in a worker thread only');
  const post = (message: FromThread, transfer: readonly Transferable[] = []): void =>
    port.postMessage(message, transfer);
  const served = await create({ data: workerData, report: (report) => post({ type: 'report', report }) });
  const { ready, calls, notice, dump = nothing, drain = nothing, failureOf = defaultFailureOf } = served;
  const handlers: Record<string, (request: never) => unknown> = {
    ...calls,
    [PING]: nothing,
    [DUMP]: () => dump(),
    [DRAIN]: () => drain(),
  };

  async function answer(id: number, call: string, request: unknown): Promise<void> {
    try {
      const done = await handlers[call]!(request as never);
      if (done instanceof WithTransfer) post({ type: 'done', id, answer: done.answer }, done.transfer);
      else post({ type: 'done', id, answer: done });
    } catch (error) {
      post({ type: 'failed', id, failure: failureOf(error, call) });
    }
  }

  port.on('message', (message: ToThread) => {
    if ('call' in message) void answer(message.id, message.call, message.request);
    else notice?.(message.notice);
  });
  post({ type: 'ready', ready });
}

function nothing(): null {
  return null;
}

function defaultFailureOf(error: unknown): ThreadFailure {
  if (!(error instanceof Error)) return { code: null, message: String(error) };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  return { code, message: error.message };
}
