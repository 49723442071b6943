/** Messages between a `SupervisedThread` and the module that calls `serveThread` in it. */
export interface ThreadProtocol {
  /** Passed to the thread at its start. */
  data: unknown;
  /** Sent once, when the thread can answer calls. */
  ready: unknown;
  /** By name: `{ request; answer }`. The thread answers each call once. */
  calls: object;
  /** Messages from the thread without a call. */
  reports: unknown;
  /** Messages to the thread without an answer. They keep their order relative to calls. */
  notices: unknown;
}

export type CallName<P extends ThreadProtocol> = keyof P['calls'] & string;

export type RequestOf<P extends ThreadProtocol, Call extends CallName<P>> = P['calls'][Call] extends {
  request: infer Request;
}
  ? Request
  : never;

export type AnswerOf<P extends ThreadProtocol, Call extends CallName<P>> = P['calls'][Call] extends {
  answer: infer Answer;
}
  ? Answer
  : never;

/** A serialised error, because errors lose their class between threads. */
export interface ThreadFailure {
  /** Null for an error without a code. */
  code: string | null;
  message: string;
}

/** Calls that every thread answers. */
export const PING = 'thread.ping';
export const DUMP = 'thread.dump';
export const DRAIN = 'thread.drain';

export type ToThread = { id: number; call: string; request: unknown } | { notice: unknown };

export type FromThread =
  | { type: 'ready'; ready: unknown }
  | { type: 'report'; report: unknown }
  | { type: 'done'; id: number; answer: unknown }
  | { type: 'failed'; id: number; failure: ThreadFailure };
