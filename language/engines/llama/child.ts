import { Socket } from 'node:net';
import { constants, getPriority, setPriority } from 'node:os';
import { AnswerError } from './answer-error.ts';
import { encodeMessage, FrameError, readMessages } from './frames.ts';
import { LoadedModel } from './loaded-model.ts';
import { type AnswerRequest, type FromChild, type Load, ToChild } from './protocol.ts';

/** Entry of the process that a model file is run in. It ends when its pipe does, so with its owner, however that ends. */

const PIPE_FD = 3;

const pipe = new Socket({ fd: PIPE_FD, readable: true, writable: true });
const stops = new Map<number, AbortController>();
let model: LoadedModel | null = null;

// Threads that the library starts inherit it, and media threads of the owner run first.
setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL));
// Signals for the whole service are its owner's business: answers of calls that are being drained are still wanted.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
pipe.on('error', leave);
serve().then(leave, (error: unknown) => {
  process.stderr.write(`${error instanceof FrameError ? error.message : String(error)}\n`, leave);
});

async function serve(): Promise<void> {
  for await (const message of readMessages(pipe)) {
    if (!ToChild.Check(message)) throw new FrameError('not a message to a model');
    if (message.type === 'load') void load(message);
    else if (message.type === 'stop') stops.get(message.id)?.abort();
    else void answer(message.id, message.request);
  }
}

async function load(load: Load): Promise<void> {
  try {
    model = await LoadedModel.load(load);
    send({ type: 'loaded', loaded: model.loaded });
  } catch (error) {
    send({ type: 'notLoaded', message: error instanceof Error ? error.message : String(error) });
  }
}

async function answer(id: number, request: AnswerRequest): Promise<void> {
  const stop = new AbortController();
  stops.set(id, stop);
  try {
    if (model === null) throw new AnswerError('unavailable', 'no model is loaded');
    const end = await model.answer(request, { signal: stop.signal, tell: (part) => send({ type: 'part', id, part }) });
    send({ type: 'finished', id, end });
  } catch (error) {
    send({ type: 'failed', id, ...failureOf(error, stop.signal) });
  } finally {
    stops.delete(id);
  }
}

/** What the library says may quote the conversation, so its kind of error is all that crosses. */
function failureOf(error: unknown, { aborted }: AbortSignal): Pick<AnswerError, 'code' | 'message'> {
  if (aborted) return { code: 'stopped', message: 'it was stopped' };
  if (error instanceof AnswerError) return { code: error.code, message: error.message };
  return { code: 'unavailable', message: `the model failed (${error instanceof Error ? error.name : typeof error})` };
}

function send(message: FromChild): void {
  pipe.write(encodeMessage(message));
}

/** At once: a thread of the library that computes would keep the process. */
function leave(): void {
  process.kill(process.pid, 'SIGKILL');
}
