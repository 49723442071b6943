/**
 * Buffers for outgoing packets. `dgram` may read a buffer after `send` returned, so there are enough slots to reuse one
 * late. Each slot caches its view for the usual size.
 */

const SLOT_COUNT = 1024;
const SLOT_BYTES = 1500;

export class SendRing {
  readonly #memory = Buffer.alloc(SLOT_COUNT * SLOT_BYTES);
  readonly #views: Buffer[] = Array.from({ length: SLOT_COUNT }, (_, slot) => this.#view(slot, 172));
  #next = 0;

  /** A buffer of exactly `bytes` (at most 1500), with old content, for one send. */
  take(bytes: number): Buffer {
    const slot = this.#next;
    this.#next = (slot + 1) % SLOT_COUNT;
    const view = this.#views[slot]!;
    if (view.length === bytes) return view;
    const resized = this.#view(slot, bytes);
    this.#views[slot] = resized;
    return resized;
  }

  #view(slot: number, bytes: number): Buffer {
    return this.#memory.subarray(slot * SLOT_BYTES, slot * SLOT_BYTES + bytes);
  }
}
