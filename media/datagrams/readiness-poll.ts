import { NativeMemory } from './native-memory.ts';
import { type Bell, type SystemCalls, systemError } from './system-calls.ts';

/**
 * Calls back when a descriptor is readable, through the kernel's asynchronous I/O: a poll request (`IOCB_CMD_POLL`,
 * Linux 4.18) raises an event counter, which Node reads. See io_submit(2).
 */

/** io_setup, io_destroy, io_getevents, io_submit. */
const CALLS_BY_ARCHITECTURE = {
  x64: { setup: 206, destroy: 207, events: 208, submit: 209 },
  arm64: { setup: 0, destroy: 1, events: 4, submit: 2 },
};
/** Offsets of struct iocb, struct io_event and a pointer. */
const IOCB = 0;
const EVENT = 64;
const POINTER = 96;
const MEMORY_BYTES = 104;
const IOCB_CMD_POLL = 5;
const IOCB_FLAG_RESFD = 1;
const POLLIN = 1;

/**
 * Kernel context of a poll. It counts against `fs.aio-max-nr` until it is destroyed or the process ends. The
 * replacement of a terminated thread destroys it through the same shared memory.
 */
export class PollContext {
  static readonly BYTES = 8;
  /** Address of the context; 0 without one. */
  readonly #address: Float64Array;

  /** @param memory of `BYTES` from `offset`, zeroed before its first use. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(PollContext.BYTES), offset = 0) {
    this.#address = new Float64Array(memory, offset, 1);
  }

  get address(): number {
    return this.#address[0]!;
  }

  /** @param pointer zeroed memory for an address, at `at`. @throws the system's error. */
  create(calls: SystemCalls, pointer: NativeMemory, at: number): void {
    this.destroy(calls);
    check(calls.syscall(callNumbers().setup, 1, pointer.address + at, 0, 0, 0, 0), 'io_setup');
    const { words } = pointer;
    this.#address[0] = (words[at / 4]! >>> 0) + (words[at / 4 + 1]! >>> 0) * 2 ** 32;
  }

  destroy(calls: SystemCalls): void {
    const { address } = this;
    this.#address[0] = 0;
    if (address !== 0) calls.syscall(callNumbers().destroy, address, 0, 0, 0, 0, 0);
  }
}

export class ReadinessPoll {
  readonly #calls: SystemCalls;
  readonly #memory: NativeMemory;
  readonly #context: PollContext;
  readonly #counter: number;
  readonly #bell: Bell;
  #isArmed = false;
  #onReadable: (() => void) | null = null;
  #rearm: NodeJS.Immediate | null = null;

  /** @throws the system's error. */
  constructor(calls: SystemCalls, descriptor: number, context: PollContext) {
    this.#calls = calls;
    this.#memory = new NativeMemory(calls, MEMORY_BYTES);
    const { words } = this.#memory;
    context.create(calls, this.#memory, POINTER);
    this.#context = context;
    this.#counter = calls.eventCounter();
    this.#bell = calls.bell(this.#counter);
    // The opcode is in the lower half of its word, the priority in the upper.
    words[IOCB / 4 + 4] = IOCB_CMD_POLL;
    words[IOCB / 4 + 5] = descriptor;
    words[IOCB / 4 + 6] = POLLIN;
    words[IOCB / 4 + 14] = IOCB_FLAG_RESFD;
    words[IOCB / 4 + 15] = this.#counter;
    this.#memory.pointFrom(this.#memory, POINTER / 4, IOCB);
    try {
      // Kernels and sandboxes without this request reject it here.
      this.#arm();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Calls back at once if it is readable now, and again whenever it is readable after a callback. */
  start(onReadable: () => void): void {
    this.#onReadable = onReadable;
    this.#bell.start(() => this.#wake());
    this.#arm();
  }

  stop(): void {
    this.#onReadable = null;
    this.#bell.stop();
  }

  close(): void {
    this.stop();
    if (this.#rearm !== null) clearImmediate(this.#rearm);
    this.#rearm = null;
    this.#bell.close();
    this.#context.destroy(this.#calls);
    this.#calls.close(this.#counter);
  }

  #wake(): void {
    this.#reap();
    this.#onReadable?.();
    // Rearm after the turn that the callback requested: until then it stays readable.
    this.#rearm ??= setImmediate(() => {
      this.#rearm = null;
      if (this.#onReadable !== null) this.#arm();
    });
  }

  #arm(): void {
    this.#reap();
    if (this.#isArmed) return;
    const { submit } = callNumbers();
    const pointer = this.#memory.address + POINTER;
    check(this.#calls.syscall(submit, this.#context.address, 1, pointer, 0, 0, 0), 'io_submit');
    this.#isArmed = true;
  }

  /** Takes the result of the request, if any. */
  #reap(): void {
    if (!this.#isArmed) return;
    const { events } = callNumbers();
    const count = this.#calls.syscall(events, this.#context.address, 0, 1, this.#memory.address + EVENT, 0, 0);
    if (count > 0) this.#isArmed = false;
  }
}

function callNumbers() {
  return CALLS_BY_ARCHITECTURE[process.arch as keyof typeof CALLS_BY_ARCHITECTURE];
}

function check(result: number, call: string): void {
  if (result < 0) throw systemError(-result, call);
}
