/** Invalid framing, after which the control connection is closed. */
export class ControlFrameError extends Error {
  override readonly name = 'ControlFrameError';
  readonly code: 'BAD_LENGTH' | 'TOO_LARGE';

  constructor(code: 'BAD_LENGTH' | 'TOO_LARGE') {
    super(code === 'TOO_LARGE' ? 'A control frame is too large' : 'A control frame does not start with its length');
    this.code = code;
  }
}

export function encodeFrame(head: string, message: Buffer | null): Buffer {
  const headBytes = Buffer.from(message === null ? head : `${head}\r\n`, 'utf8');
  const length = headBytes.length + (message?.length ?? 0);
  return Buffer.concat([Buffer.from(`${length}#`, 'latin1'), headBytes, message ?? Buffer.alloc(0)]);
}

/** Splits a stream into drachtio's `<decimal byte length>#<payload>` frames. After a throw, close the connection. */
export class FrameReader {
  /** Longest accepted payload; raised once the peer has authenticated. */
  maxPayloadBytes: number;
  #chunks: Buffer[] = [];
  #length = 0;

  constructor(maxPayloadBytes: number) {
    this.maxPayloadBytes = maxPayloadBytes;
  }

  /**
   * Passes on complete payloads one by one, so that the effect of one (authenticate) applies to the next.
   * @throws ControlFrameError, and whatever `onPayload` throws.
   */
  push(chunk: Buffer, onPayload: (payload: Buffer) => void): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (let payload = this.#next(); payload !== null; payload = this.#next()) onPayload(payload);
  }

  #next(): Buffer | null {
    const size = this.#payloadSize();
    if (size === null || this.#length < size.start + size.length) return null;
    const bytes = this.#joined();
    const end = size.start + size.length;
    this.#chunks = end === bytes.length ? [] : [bytes.subarray(end)];
    this.#length -= end;
    return bytes.subarray(size.start, end);
  }

  #payloadSize(): { start: number; length: number } | null {
    if (this.#length === 0) return null;
    // The digits may span chunks, but then the chunks are few and small.
    const first = this.#chunks[0] ?? Buffer.alloc(0);
    const bytes = first.length > MAX_DIGITS ? first : this.#joined();
    const hash = bytes.subarray(0, MAX_DIGITS + 1).indexOf(HASH);
    const digits = bytes.toString('latin1', 0, hash === -1 ? Math.min(bytes.length, MAX_DIGITS + 1) : hash);
    if (!/^\d{0,6}$/.test(digits) || hash === 0) throw new ControlFrameError('BAD_LENGTH');
    if (hash === -1) return null;
    const length = Number(digits);
    if (length === 0) throw new ControlFrameError('BAD_LENGTH');
    if (length > this.maxPayloadBytes) throw new ControlFrameError('TOO_LARGE');
    return { start: hash + 1, length };
  }

  #joined(): Buffer {
    const [only] = this.#chunks;
    const bytes = this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks);
    this.#chunks = [bytes];
    return bytes;
  }
}

const MAX_DIGITS = 6;
const HASH = 0x23;
