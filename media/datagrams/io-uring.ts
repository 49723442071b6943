import { NativeMemory } from './native-memory.ts';
import { type SystemCalls, systemError } from './system-calls.ts';

/**
 * The part of io_uring(7) for datagrams: rings of submissions, completions and receive buffers, shared with the kernel
 * and used without allocation. Needs Linux 6.1. Only the opening thread may use a ring; the kernel processes requests
 * only inside `enter`.
 */

const SETUP = 425;
const ENTER = 426;
const REGISTER = 427;
const REGISTER_EVENTFD = 4;
const REGISTER_PBUF_RING = 22;
const SETUP_CQSIZE = 1 << 3;
const SETUP_SUBMIT_ALL = 1 << 7;
const SETUP_TASKRUN_FLAG = 1 << 9;
const SETUP_SINGLE_ISSUER = 1 << 12;
const SETUP_DEFER_TASKRUN = 1 << 13;
const ENTER_GETEVENTS = 1;
const OFFSET_SQES = 0x1000_0000;
const CQ_EVENTFD_DISABLED = 1;
/** IORING_SQ_CQ_OVERFLOW and IORING_SQ_TASKRUN. */
const SQ_NEEDS_ENTER = 2 | 4;
const SQE_WORDS = 16;
const CQE_WORDS = 4;
const BUFFER_WORDS = 4;
/** EINTR, EAGAIN, ENOMEM and EBUSY: the next `enter` may succeed. */
const PASSING_ERRORS = [-4, -11, -12, -16];

const OP_RECVMSG = 10;
const OP_ASYNC_CANCEL = 14;
const OP_SEND = 26;
const SQE_BUFFER_SELECT = 1 << 5;
const SQE_SKIP_SUCCESS = 1 << 6;
const RECV_MULTISHOT = 1 << 1;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;

export const CQE_HAS_BUFFER = 1;
export const CQE_HAS_MORE = 2;

interface RingOptions {
  mappings: RingMappings;
  /** Powers of two. */
  submissions: number;
  completions: number;
  buffers: number;
  bufferBytes: number;
}

/**
 * Memory mappings of a ring, which keep the ring and the ports of its sockets alive. The replacement of a terminated
 * thread calls `unmapAll` on the same shared memory.
 */
export class RingMappings {
  static readonly BYTES = 32;
  /** Address and size of both mappings. */
  readonly #values: Float64Array;

  /** @param memory of at least `BYTES`, zeroed before its first use. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(RingMappings.BYTES)) {
    this.#values = new Float64Array(memory);
  }

  map(calls: SystemCalls, descriptor: number, bytes: number, offset: number): Int32Array {
    const address = calls.map(descriptor, bytes, offset);
    const at = this.#values[0] === 0 ? 0 : 2;
    this.#values[at + 1] = bytes;
    this.#values[at] = address;
    return new Int32Array(calls.view(address, bytes));
  }

  unmapAll(calls: SystemCalls): void {
    for (const at of [0, 2]) {
      const address = this.#values[at]!;
      this.#values[at] = 0;
      if (address !== 0) calls.unmap(address, this.#values[at + 1]!);
    }
  }
}

export class IoUring {
  /** Received datagrams; buffer n begins at n times `bufferBytes`. */
  readonly buffers: NativeMemory;
  readonly bufferBytes: number;
  readonly #calls: SystemCalls;
  readonly #descriptor: number;
  readonly #counter: number;
  readonly #mappings: RingMappings;
  readonly #rings: Int32Array;
  readonly #entries: Int32Array;
  readonly #submissions: number;
  readonly #sqTailAt: number;
  readonly #sqFlagsAt: number;
  readonly #cqHeadAt: number;
  readonly #cqTailAt: number;
  readonly #cqFlagsAt: number;
  readonly #cqesAt: number;
  readonly #cqMask: number;
  readonly #bufferRing: NativeMemory;
  readonly #bufferMask: number;
  readonly #bufferRingHalves: Uint16Array;
  /** Submissions not yet passed to the kernel. */
  #pending = 0;
  #sqTail = 0;
  #cqHead = 0;
  #bufferTail = 0;

  /** @throws the system's error: EPERM where io_uring is forbidden, EINVAL on an older kernel. */
  constructor(calls: SystemCalls, options: RingOptions) {
    this.#calls = calls;
    const parameters = new NativeMemory(calls, 120);
    const { words } = parameters;
    words[1] = options.completions;
    words[2] = SETUP_CQSIZE | SETUP_SUBMIT_ALL | SETUP_TASKRUN_FLAG | SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN;
    const descriptor = calls.syscall(SETUP, options.submissions, parameters.address, 0, 0, 0, 0);
    if (descriptor < 0) throw systemError(-descriptor, 'io_uring_setup');
    this.#descriptor = calls.own(descriptor);
    this.#counter = calls.eventCounter();
    this.#submissions = words[0]!;
    const completions = words[1]!;
    // struct io_sqring_offsets at byte 40, struct io_cqring_offsets at byte 80.
    const [, sqTail, , , sqFlags, , sqArray] = words.subarray(10, 17);
    const [cqHead, cqTail, , , , cqes, cqFlags] = words.subarray(20, 27);
    const ringBytes = Math.max(sqArray! + 4 * this.#submissions, cqes! + 16 * completions);
    this.#mappings = options.mappings;
    this.#mappings.unmapAll(calls);
    this.#rings = this.#mappings.map(calls, this.#descriptor, ringBytes, 0);
    this.#entries = this.#mappings.map(calls, this.#descriptor, 4 * SQE_WORDS * this.#submissions, OFFSET_SQES);
    for (let entry = 0; entry < this.#submissions; entry++) this.#rings[sqArray! / 4 + entry] = entry;
    this.#sqTailAt = sqTail! / 4;
    this.#sqFlagsAt = sqFlags! / 4;
    this.#cqHeadAt = cqHead! / 4;
    this.#cqTailAt = cqTail! / 4;
    this.#cqFlagsAt = cqFlags! / 4;
    this.#cqesAt = cqes! / 4;
    this.#cqMask = completions - 1;

    this.bufferBytes = options.bufferBytes;
    this.buffers = new NativeMemory(calls, options.buffers * options.bufferBytes);
    this.#bufferRing = new NativeMemory(calls, 4 * BUFFER_WORDS * options.buffers);
    this.#bufferRingHalves = new Uint16Array(
      this.#bufferRing.bytes.buffer,
      this.#bufferRing.bytes.byteOffset,
      2 * BUFFER_WORDS * options.buffers,
    );
    this.#bufferMask = options.buffers - 1;
    // struct io_uring_buf_reg: address, entries, group 0.
    const registration = new NativeMemory(calls, 40);
    registration.words[0] = this.#bufferRing.addressLow;
    registration.words[1] = this.#bufferRing.addressHigh;
    registration.words[2] = options.buffers;
    this.#register(REGISTER_PBUF_RING, registration);
    for (let buffer = 0; buffer < options.buffers; buffer++) this.releaseBuffer(buffer);
    this.#publishBuffers();
    const counter = new NativeMemory(calls, 4);
    counter.words[0] = this.#counter;
    this.#register(REGISTER_EVENTFD, counter);
  }

  /** Event counter, readable when there is work and `setNotifying` is on. Reset it before `enter`. */
  get counter(): number {
    return this.#counter;
  }

  /** Makes room for a submission, if necessary by `enter`. Returns whether there is room. */
  makeRoom(): boolean {
    if (this.#pending >= this.#submissions) this.enter();
    return this.#pending < this.#submissions;
  }

  /** Index of the next submission, below `submissions`. Reused only after an `enter`. */
  get nextEntry(): number {
    return this.#sqTail & (this.#submissions - 1);
  }

  /** Whether the kernel wakes us. After turning it on, `enter` once for earlier work. */
  setNotifying(isNotifying: boolean): void {
    Atomics.store(this.#rings, this.#cqFlagsAt, isNotifying ? 0 : CQ_EVENTFD_DISABLED);
  }

  /**
   * Receives until it fails or is cancelled; each datagram is a completion with a buffer. `template` is a `struct
   * msghdr` with the length of the source address. Like the next two, it needs room.
   */
  receive(descriptor: number, template: NativeMemory, id: number): void {
    const at = this.#next(OP_RECVMSG | (SQE_BUFFER_SELECT << 8) | (RECV_MULTISHOT << 16), descriptor, id);
    this.#entries[at + 4] = template.addressLow;
    this.#entries[at + 5] = template.addressHigh;
    this.#entries[at + 6] = 1;
  }

  cancel(id: number, cancelId: number): void {
    const at = this.#next(OP_ASYNC_CANCEL, -1, cancelId);
    this.#entries[at + 4] = id;
  }

  /** Sends once, without waiting. Only a failure is a completion. The memory is read in the next `enter`. */
  send(options: SendFields): void {
    const { memory, to } = options;
    const at = this.#next(OP_SEND | (SQE_SKIP_SUCCESS << 8), options.descriptor, options.id);
    const entries = this.#entries;
    entries[at + 2] = (to.addressLow + options.toOffset) | 0;
    entries[at + 3] = to.addressHigh;
    entries[at + 4] = (memory.addressLow + options.offset) | 0;
    entries[at + 5] = memory.addressHigh;
    entries[at + 6] = options.bytes;
    entries[at + 7] = MSG_DONTWAIT | MSG_NOSIGNAL;
    entries[at + 11] = options.toBytes;
  }

  /** Submits everything, lets the kernel complete requests, then returns used buffers to it. One system call. */
  enter(): void {
    Atomics.store(this.#rings, this.#sqTailAt, this.#sqTail);
    const taken = this.#calls.syscall(ENTER, this.#descriptor, this.#pending, 0, ENTER_GETEVENTS, 0, 0);
    if (taken >= 0) this.#pending -= taken;
    else if (!PASSING_ERRORS.includes(taken)) throw systemError(-taken, 'io_uring_enter');
    this.#publishBuffers();
  }

  get hasWork(): boolean {
    return this.#pending > 0 || (Atomics.load(this.#rings, this.#sqFlagsAt) & SQ_NEEDS_ENTER) !== 0;
  }

  get hasCompletion(): boolean {
    return this.#cqHead !== Atomics.load(this.#rings, this.#cqTailAt);
  }

  /** Reads the oldest completion into `completion` and frees its slot. */
  takeCompletion(completion: Completion): void {
    const at = this.#cqesAt + CQE_WORDS * (this.#cqHead & this.#cqMask);
    completion.id = this.#rings[at]!;
    completion.result = this.#rings[at + 2]!;
    completion.flags = this.#rings[at + 3]! & 0xffff;
    completion.buffer = this.#rings[at + 3]! >>> 16;
    this.#cqHead = (this.#cqHead + 1) | 0;
    Atomics.store(this.#rings, this.#cqHeadAt, this.#cqHead);
  }

  /** Lets the kernel refill the buffer after the next `enter`. */
  releaseBuffer(buffer: number): void {
    const at = BUFFER_WORDS * (this.#bufferTail & this.#bufferMask);
    const { words } = this.#bufferRing;
    words[at] = (this.buffers.addressLow + buffer * this.bufferBytes) | 0;
    words[at + 1] = this.buffers.addressHigh;
    words[at + 2] = this.bufferBytes;
    this.#bufferRingHalves[2 * at + 6] = buffer;
    this.#bufferTail = (this.#bufferTail + 1) & 0xffff;
  }

  /** Releases the memory. Call nothing after it. */
  close(): void {
    this.#mappings.unmapAll(this.#calls);
    this.#calls.close(this.#descriptor);
    this.#calls.close(this.#counter);
  }

  #next(operation: number, descriptor: number, id: number): number {
    const at = SQE_WORDS * this.nextEntry;
    const entries = this.#entries;
    entries[at] = operation;
    entries[at + 1] = descriptor;
    for (let word = 2; word < SQE_WORDS; word++) entries[at + word] = 0;
    entries[at + 8] = id;
    this.#sqTail = (this.#sqTail + 1) | 0;
    this.#pending += 1;
    return at;
  }

  /** The tail is stored in the unused half of the first entry. */
  #publishBuffers(): void {
    Atomics.store(this.#bufferRingHalves, 7, this.#bufferTail);
  }

  #register(operation: number, argument: NativeMemory): void {
    const result = this.#calls.syscall(REGISTER, this.#descriptor, operation, argument.address, 1, 0, 0);
    if (result < 0) throw systemError(-result, 'io_uring_register');
  }
}

export interface SendFields {
  descriptor: number;
  memory: NativeMemory;
  offset: number;
  bytes: number;
  to: NativeMemory;
  toOffset: number;
  toBytes: number;
  id: number;
}

export interface Completion {
  id: number;
  /** Or a negative error number. */
  result: number;
  flags: number;
  /** With `CQE_HAS_BUFFER`. */
  buffer: number;
}
