import { setImmediate } from 'node:timers/promises';

/** Takes about as long as nobody minds, whatever the text is. */
const SLICE = 2_048;

/** Parts of a long text, one after another; between them others have their turn. No surrogate pair is cut in two. */
export async function* slicesOf(text: string): AsyncGenerator<{ from: number; to: number }, void> {
  for (let from = 0; from < text.length; ) {
    const to = sliceEnd(text, from);
    yield { from, to };
    from = to;
    if (from < text.length) await setImmediate();
  }
}

function sliceEnd(text: string, from: number): number {
  const end = Math.min(text.length, from + SLICE);
  const isHigh = end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
  return isHigh ? end + 1 : end;
}
