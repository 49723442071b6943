import { storable } from '../../storage/queries/chats.ts';

/** Makes streamed text storable. A character split across pieces moves to the later piece. */
export class StorableText {
  #half = '';

  push(piece: string): string {
    const text = this.#half + piece;
    const end = isFirstHalf(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length;
    this.#half = text.slice(end);
    return storable(text.slice(0, end));
  }

  /** Returns the rest at the end of the stream. */
  end(): string {
    const half = this.#half;
    this.#half = '';
    return storable(half);
  }
}

function isFirstHalf(charCode: number): boolean {
  return charCode >= 0xd800 && charCode <= 0xdbff;
}
