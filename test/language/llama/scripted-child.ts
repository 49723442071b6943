import { Socket } from 'node:net';
import type { FromChild } from '../../../language/engines/llama/protocol.ts';
import { encodeMessage, type JsonValue, readMessages } from '../../../runtime/frames.ts';

/** A model process without a model. The file name selects how loading ends, the last message what it does. */

const pipe = new Socket({ fd: 3, readable: true, writable: true });
const waiting = new Set<number>();
pipe.on('error', () => process.exit(0));

for await (const { head } of readMessages(pipe)) {
  const message = head as { type: string; id: number; modelPath: string; request: { messages: { content: string }[] } };
  if (message.type === 'load') load(message.modelPath);
  else if (message.type === 'stop') stop(message.id);
  else answer(message.id, message.request.messages.at(-1)?.content ?? '', JSON.stringify(message.request));
}
process.exit(0);

function load(modelPath: string): void {
  if (modelPath.includes('refused')) send({ type: 'notLoaded', message: 'the file is damaged' });
  else if (modelPath.includes('crashing')) process.stderr.write('GGML_ASSERT: no\n', () => process.abort());
  else if (!modelPath.includes('slow')) {
    send({ type: 'loaded', loaded: { contextTokens: 100, description: 'Scripted' } });
  }
}

function answer(id: number, order: string, request: string): void {
  const [verb, ...words] = order.split(' ');
  if (verb === 'say') {
    for (const text of words) send({ type: 'part', id, part: { type: 'text', text } });
    finish(id, words.length);
  } else if (verb === 'repeat') {
    send({ type: 'part', id, part: { type: 'text', text: request } });
    finish(id, 1);
  } else if (verb === 'environment') {
    send({ type: 'part', id, part: { type: 'text', text: Object.keys(process.env).join(' ') } });
    finish(id, 1);
  } else if (verb === 'begin') {
    waiting.add(id);
    send({ type: 'part', id, part: { type: 'text', text: 'begun' } });
  } else if (verb === 'overflow') {
    send({ type: 'failed', id, code: 'context_too_long', message: 'the prompt has 200 tokens of at most 100' });
  } else if (verb === 'crash') {
    process.kill(process.pid, 'SIGSEGV');
  } else if (verb === 'rave') {
    write({ type: 'part', id, part: { type: 'text', text: 7 } });
  } else if (verb === 'flood') {
    pipe.write(Buffer.of(255, 255, 255, 127, 0, 0, 0, 0));
  } else if (verb === 'stray') {
    send({ type: 'part', id: id + 1000, part: { type: 'text', text: 'for nobody' } });
  }
}

function stop(id: number): void {
  if (!waiting.delete(id)) return;
  send({ type: 'failed', id, code: 'stopped', message: 'it was stopped' });
}

function finish(id: number, completionTokens: number): void {
  send({ type: 'finished', id, end: { reason: 'stop', promptTokens: 3, completionTokens } });
}

function send(message: FromChild): void {
  write(message as JsonValue);
}

function write(message: JsonValue): void {
  for (const part of encodeMessage(message)) pipe.write(part);
}
