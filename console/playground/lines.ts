/** Yields the lines of a text stream, without line ends. */
export async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string, void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + (value ?? '')).split('\n');
      rest = done ? '' : lines.pop()!;
      for (const line of lines) yield line.replace(/\r$/, '');
      if (done) return;
    }
  } finally {
    // A reader that stops early aborts the request.
    await reader.cancel().catch(() => undefined);
  }
}

/** Yields the data of one-line Server-Sent Events, up to OpenAI's `[DONE]`. */
export async function* eventsOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<unknown, void> {
  for await (const line of linesOf(body)) {
    const data = /^data: ?(.*)$/.exec(line)?.[1];
    if (data === '[DONE]') return;
    if (data) yield JSON.parse(data);
  }
}
