import { readAtMost } from '../../../runtime/read-at-most.ts';
import { Slice } from '../../../runtime/slices.ts';

/**
 * A `fetch` for untrusted servers. It follows no redirects, which would leak the key, and limits the length of a
 * response. A chat response becomes one server-sent event per chunk, even if the server sent it as one JSON document.
 */
export const boundedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: 'error' });
  const { status, headers } = response;
  if (!response.ok) return new Response(await wholeBody(response, MAX_ERROR_BYTES), { status, headers });
  const type = (headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  const { pathname } = new URL(input instanceof Request ? input.url : input);
  const isChat = pathname.endsWith('/chat/completions');
  if (!isChat) return new Response(await wholeBody(response, MAX_DOCUMENT_BYTES), { status, headers });
  if (JSON_TYPE.test(type)) return eventStream(eventOfJson(await wholeBody(response, MAX_JSON_ANSWER_BYTES)));
  if (!EVENT_TYPES.has(type)) {
    await response.body?.cancel();
    throw new UnusableAnswer('it answers with something else than JSON or events');
  }
  return eventStream(wholeEvents(response));
};

/** The response breaks off, never ends or is invalid. The message is for the operator. */
export class UnusableAnswer extends Error {
  override readonly name = 'UnusableAnswer';
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/;
/** Media types of event streams. Some servers send none or a wrong one. */
const EVENT_TYPES = new Set([
  'text/event-stream',
  'text/plain',
  'application/octet-stream',
  'application/x-ndjson',
  '',
]);
const MAX_ERROR_BYTES = 65_536;
/** More than embeddings of 32 texts or a list of hundreds of models. Limited, because parsing blocks the thread. */
const MAX_DOCUMENT_BYTES = 8 * 2 ** 20;
const MAX_JSON_ANSWER_BYTES = 2 ** 20;
/** A chunk has some hundred bytes; an event with the complete answer has more. */
const MAX_EVENT_BYTES = 2 ** 19;
const MAX_STREAM_BYTES = 128 * 2 ** 20;
const SLICE_BYTES = 4_096;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;

function eventStream(events: AsyncGenerator<Uint8Array, void>): Response {
  const body = new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await events.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await events.return();
      },
    },
    // No read-ahead: an error after the last event must not overtake it.
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** Yields the document as the only event of a stream. */
async function* eventOfJson(json: Buffer): AsyncGenerator<Uint8Array, void> {
  // Makes the document one line, as an event requires. JSON strings contain no raw line ends.
  for (let at = 0; at < json.length; at++) if (json[at] === NEWLINE || json[at] === RETURN) json[at] = SPACE;
  yield Buffer.concat([Buffer.from('data: '), json, Buffer.from('\n\ndata: [DONE]\n\n')]);
}

/** Cuts the stream at event ends, so that the decoder holds at most one incomplete event. */
async function* wholeEvents(response: Response): AsyncGenerator<Uint8Array, void> {
  const events = new EventCutter();
  let bytes = 0;
  const slice = new Slice();
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_STREAM_BYTES) throw new UnusableAnswer('its answer does not end');
    for (let start = 0; start < chunk.byteLength; start += SLICE_BYTES) {
      // A fast server would otherwise starve the event loop with resolved promises.
      if (slice.isOver) await slice.rest();
      const whole = events.push(chunk.subarray(start, start + SLICE_BYTES));
      if (whole !== null) yield whole;
    }
  }
  const rest = events.rest();
  if (rest !== null) yield rest;
  // Unreachable after `[DONE]`: the reader stops there.
  throw new UnusableAnswer('its answer broke off');
}

/** Collects bytes until an event ends, with a blank line. */
class EventCutter {
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  /** Whether the current line is empty. */
  #isBlank = false;

  /** Returns the events that the chunk completes; null if none. */
  push(chunk: Uint8Array): Uint8Array | null {
    const end = this.#endOfLastEvent(chunk);
    if (end === 0) {
      this.#keep(chunk);
      return null;
    }
    const whole = Buffer.concat([...this.#pending, chunk.subarray(0, end)]);
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#keep(chunk.subarray(end));
    return whole;
  }

  /** Ends the incomplete last event and returns it; null if there is none. */
  rest(): Uint8Array | null {
    return this.#pendingBytes === 0 ? null : Buffer.concat([...this.#pending, Buffer.from('\n\n')]);
  }

  #keep(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    this.#pendingBytes += bytes.byteLength;
    if (this.#pendingBytes > MAX_EVENT_BYTES) throw new UnusableAnswer('a piece of its answer does not end');
    this.#pending.push(bytes);
  }

  /** Index after the blank line; 0 if no event ends in this chunk. */
  #endOfLastEvent(chunk: Uint8Array): number {
    let end = 0;
    let lineStart = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) {
      const isEmpty = at === lineStart || (at === lineStart + 1 && chunk[lineStart] === RETURN);
      if (isEmpty && (lineStart > 0 || this.#isBlank)) end = at + 1;
      lineStart = at + 1;
    }
    const left = chunk.byteLength - lineStart;
    const isReturn = left === 1 && chunk[lineStart] === RETURN;
    this.#isBlank = (left === 0 || isReturn) && (lineStart > 0 || this.#isBlank);
    return end;
  }
}

function wholeBody(response: Response, mostBytes: number): Promise<Buffer<ArrayBuffer>> {
  return readAtMost(response, { mostBytes, tooLong: () => new UnusableAnswer('its answer is too long') });
}
