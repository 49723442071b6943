import { FrameError, type JsonValue } from '../../../runtime/frames.ts';
import { serveProcess } from '../../../runtime/serve-process.ts';
import { AnswerError } from './answer-error.ts';
import { LoadedModel } from './loaded-model.ts';
import { type AnswerRequest, type FromChild, LLAMA_LIMITS, type Load, ToChild } from './protocol.ts';

/** Entry of the process that runs a model file. */

const stops = new Map<number, AbortController>();
let model: LoadedModel | null = null;

serveProcess(
  async (pipe) => {
    const send = (message: FromChild): void => pipe.send(message as JsonValue);
    for await (const { head: message } of pipe.messages) {
      if (!ToChild.matches(message)) throw new FrameError('not a message to a model');
      if (message.type === 'load') void load(message, send);
      else if (message.type === 'stop') stops.get(message.id)?.abort();
      else void answer(message, send);
    }
  },
  // SIGKILL, because a computing thread of the library would keep the process alive.
  { limits: LLAMA_LIMITS, leave: () => process.kill(process.pid, 'SIGKILL') },
);

async function load(load: Load, send: (message: FromChild) => void): Promise<void> {
  try {
    model = await LoadedModel.load(load);
    send({ type: 'loaded', loaded: model.loaded });
  } catch (error) {
    send({ type: 'notLoaded', message: error instanceof Error ? error.message : String(error) });
  }
}

async function answer(
  { id, request }: { id: number; request: AnswerRequest },
  send: (message: FromChild) => void,
): Promise<void> {
  const stop = new AbortController();
  stops.set(id, stop);
  try {
    if (model === null) throw new AnswerError('unavailable', 'no model is loaded');
    const end = await model.answer(request, { signal: stop.signal, emit: (part) => send({ type: 'part', id, part }) });
    send({ type: 'finished', id, end });
  } catch (error) {
    send({ type: 'failed', id, ...failureOf(error, stop.signal) });
  } finally {
    stops.delete(id);
  }
}

/** The library's messages may quote the conversation, so only the error's name leaves the process. */
function failureOf(error: unknown, { aborted }: AbortSignal): Pick<AnswerError, 'code' | 'message'> {
  if (aborted) return { code: 'stopped', message: 'it was stopped' };
  if (error instanceof AnswerError) return { code: error.code, message: error.message };
  return { code: 'unavailable', message: `the model failed (${error instanceof Error ? error.name : typeof error})` };
}
