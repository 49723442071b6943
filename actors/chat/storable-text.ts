import { storable } from '../../storage/queries/chats.ts';

/** Text that comes in pieces, as it can be stored and sent on. A character that was cut in two is in the later piece. */
export class StorableText {
  #half = '';

  push(piece: string): string {
    const text = this.#half + piece;
    const end = isFirstHalf(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length;
    this.#half = text.slice(end);
    return storable(text.slice(0, end));
  }

  /** What is left over, once nothing follows. */
  end(): string {
    const half = this.#half;
    this.#half = '';
    return storable(half);
  }
}

function isFirstHalf(charCode: number): boolean {
  return charCode >= 0xd800 && charCode <= 0xdbff;
}
