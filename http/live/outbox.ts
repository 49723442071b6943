import { within } from '../../runtime/waiting.ts';

export interface OutboxLimits {
  maxFrames: number;
  maxBytes: number;
}

export interface Frame {
  text: string;
  /** A newer frame with the same key replaces a waiting one. Null: every frame is sent. */
  key: string | null;
}

/**
 * Frames waiting for one client. If the client reads too slowly, it discards them, accepts no more and sets
 * `isOverflown`.
 */
export class Outbox {
  readonly #limits: OutboxLimits;
  #frames: Frame[] = [];
  readonly #byKey = new Map<string, Frame>();
  #bytes = 0;
  #isOverflown = false;
  #notify: () => void = () => undefined;

  constructor(limits: OutboxLimits) {
    this.#limits = limits;
  }

  get isOverflown(): boolean {
    return this.#isOverflown;
  }

  get isIdle(): boolean {
    return this.#frames.length === 0 && !this.#isOverflown;
  }

  put({ text, key }: Frame): void {
    if (this.#isOverflown) return;
    const waiting = key === null ? undefined : this.#byKey.get(key);
    if (waiting !== undefined) {
      this.#bytes += text.length - waiting.text.length;
      waiting.text = text;
    } else {
      const frame = { text, key };
      this.#frames.push(frame);
      if (key !== null) this.#byKey.set(key, frame);
      this.#bytes += text.length;
    }
    if (this.#frames.length > this.#limits.maxFrames || this.#bytes > this.#limits.maxBytes) this.#overflow();
    this.#notify();
  }

  /** Returns all waiting frames, joined. Empty after the timeout, an abort or an overflow. */
  async take({ timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal }): Promise<string> {
    if (this.isIdle && !signal.aborted && timeoutMs > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#notify = resolve;
      await within(promise, { ms: timeoutMs, signal }).catch(() => {});
    }
    return this.#takeAll();
  }

  wake(): void {
    this.#notify();
  }

  clear(): void {
    this.#takeAll();
  }

  #takeAll(): string {
    const text = this.#frames.map((frame) => frame.text).join('');
    this.#frames = [];
    this.#byKey.clear();
    this.#bytes = 0;
    return text;
  }

  #overflow(): void {
    this.#takeAll();
    this.#isOverflown = true;
  }
}
