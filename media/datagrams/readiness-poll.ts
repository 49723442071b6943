import { NativeMemory } from './native-memory.ts';
import { type Bell, type SystemCalls, systemError } from './system-calls.ts';

/**
 * Calls back when a descriptor is readable, by the kernel's asynchronous I/O: a poll request (`IOCB_CMD_POLL`, Linux 4.18)
 * raises an event counter, which Node reads. See io_submit(2).
 */

/** io_setup, io_destroy, io_getevents, io_submit. */
const CALLS_BY_ARCHITECTURE: Record<string, [number, number, number, number]> = {
  x64: [206, 207, 208, 209],
  arm64: [0, 1, 4, 2],
};
/** struct iocb, struct io_event, and a pointer, each at a place of its own in one memory. */
const IOCB = 0;
const EVENT = 64;
const POINTER = 96;
const MEMORY_BYTES = 104;
const IOCB_CMD_POLL = 5;
const IOCB_FLAG_RESFD = 1;
const POLLIN = 1;

export class ReadinessPoll {
  readonly #calls: SystemCalls;
  readonly #numbers: { setup: number; destroy: number; events: number; submit: number };
  readonly #memory: NativeMemory;
  readonly #context: number;
  readonly #counter: number;
  readonly #bell: Bell;
  /** A request is with the kernel. */
  #isArmed = false;
  #onReadable: (() => void) | null = null;
  #rearm: NodeJS.Immediate | null = null;

  /** @throws the system's error. */
  constructor(calls: SystemCalls, descriptor: number) {
    this.#calls = calls;
    const [setup, destroy, events, submit] = CALLS_BY_ARCHITECTURE[process.arch]!;
    this.#numbers = { setup, destroy, events, submit };
    this.#memory = new NativeMemory(calls, MEMORY_BYTES);
    const { words, address } = this.#memory;
    this.#check(calls.syscall(setup, 1, address + POINTER, 0, 0, 0, 0), 'io_setup');
    this.#context = wordsToAddress(words, POINTER / 4);
    this.#counter = calls.eventCounter();
    this.#bell = calls.bell(this.#counter);
    // The opcode is in the lower half of its word, the priority in the upper.
    words[IOCB / 4 + 4] = IOCB_CMD_POLL;
    words[IOCB / 4 + 5] = descriptor;
    words[IOCB / 4 + 6] = POLLIN;
    words[IOCB / 4 + 14] = IOCB_FLAG_RESFD;
    words[IOCB / 4 + 15] = this.#counter;
    this.#memory.pointFrom(this.#memory, POINTER / 4, IOCB);
  }

  /** Calls back at once if it is readable now, and whenever it is after a callback was dealt with. */
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
    this.#calls.syscall(this.#numbers.destroy, this.#context, 0, 0, 0, 0, 0);
    this.#calls.close(this.#counter);
  }

  #wake(): void {
    this.#reap();
    this.#onReadable?.();
    // After the turn that the callback has asked for: until then it stays readable.
    this.#rearm ??= setImmediate(() => {
      this.#rearm = null;
      if (this.#onReadable !== null) this.#arm();
    });
  }

  #arm(): void {
    this.#reap();
    if (this.#isArmed) return;
    const { submit } = this.#numbers;
    this.#check(this.#calls.syscall(submit, this.#context, 1, this.#memory.address + POINTER, 0, 0, 0), 'io_submit');
    this.#isArmed = true;
  }

  /** Takes the answer to the request, if there is one. */
  #reap(): void {
    if (!this.#isArmed) return;
    const { events } = this.#numbers;
    const count = this.#calls.syscall(events, this.#context, 0, 1, this.#memory.address + EVENT, 0, 0);
    if (count > 0) this.#isArmed = false;
  }

  #check(result: number, call: string): void {
    if (result < 0) throw systemError(-result, call);
  }
}

function wordsToAddress(words: Int32Array | Uint32Array, at: number): number {
  return (words[at]! >>> 0) + (words[at + 1]! >>> 0) * 2 ** 32;
}
