import { compileWasm, type WasmMemory } from '../../runtime/assembled-wasm.ts';

/**
 * `dot-products.wat`, assembled. SIMD multiplies sixteen bytes at once, which JavaScript cannot. A test assembles it
 * again.
 */
export const DOT_PRODUCTS_WASM =
  'AGFzbQEAAAABCAFgBH9/f38AAwIBAAUDAQABBxECBm1lbW9yeQIABGRvdHMAAAqlAQGiAQIBfwN7AkADQCABRQ0BQQAhBP0MAAAAAAAAAAAAAAAAAAAAACEFA0AgBP0ABAAhBiAAIARq/QAEACEHIAUgBv2HASAH/YcB/boBIAb9iAEgB/2IAf26Af2uAf2uASEFIARBEGoiBCACSQ0ACyADIAX9GwAgBf0bAWogBf0bAiAF/RsDamo2AgAgACACaiEAIANBBGohAyABQQFrIQEMAAsLCw==';

/** Rows are padded to this number of lanes. */
export const ROW_ALIGNMENT = 16;

const PAGE = 65_536;
const LARGEST = 4 * 1024 ** 3 - PAGE;

interface DotProducts {
  memory: WasmMemory;
  dots(rows: number, count: number, stride: number, out: number): void;
}

const instantiate = compileWasm<DotProducts>(DOT_PRODUCTS_WASM);

/** Rows of signed bytes in one WebAssembly memory, with the query before them and the dot products after them. */
export class ByteRows {
  readonly dimensions: number;
  readonly stride: number;
  #count = 0;
  #capacity = 0;
  readonly #wasm: DotProducts;

  constructor(dimensions: number) {
    this.dimensions = dimensions;
    this.stride = Math.ceil(dimensions / ROW_ALIGNMENT) * ROW_ALIGNMENT;
    this.#wasm = instantiate();
  }

  get count(): number {
    return this.#count;
  }

  /** Allocated memory, used or not. */
  get bytes(): number {
    return this.#wasm.memory.buffer.byteLength;
  }

  /** @throws RangeError if the memory is full */
  push(row: Uint8Array): void {
    if (this.#count === this.#capacity) this.#grow();
    this.#row(this.#count).fill(0).set(row);
    this.#count += 1;
  }

  /** Moves the last row into the gap. */
  remove(index: number): void {
    this.#count -= 1;
    if (index !== this.#count) this.#row(index).set(this.#row(this.#count));
  }

  /** Dot products of every row with `query`. Valid until the next call. */
  dotsWith(query: Uint8Array): Int32Array {
    new Uint8Array(this.#wasm.memory.buffer, 0, this.stride).fill(0).set(query);
    const out = this.stride * (this.#capacity + 1);
    this.#wasm.dots(this.stride, this.#count, this.stride, out);
    return new Int32Array(this.#wasm.memory.buffer, out, this.#count);
  }

  #row(index: number): Uint8Array {
    return new Uint8Array(this.#wasm.memory.buffer, this.stride * (index + 1), this.stride);
  }

  #grow(): void {
    const capacity = Math.max(64, Math.ceil(this.#capacity * 1.5));
    const needed = this.stride * (capacity + 1) + 4 * capacity;
    if (needed > LARGEST) throw new RangeError('more rows than a memory holds');
    const pages = Math.ceil(needed / PAGE) - this.#wasm.memory.buffer.byteLength / PAGE;
    if (pages > 0) this.#wasm.memory.grow(pages);
    this.#capacity = capacity;
  }
}
