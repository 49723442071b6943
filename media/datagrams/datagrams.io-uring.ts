import { isIPv6 } from 'node:net';
import { enlarged } from '../enlarged.ts';
import type { BindOptions, DatagramForwarder, DatagramReceiver, DatagramSocket, Datagrams } from './datagrams.ts';
import { DrainSchedule, MOST_MS_PER_TURN, MOST_PACKETS_PER_TURN } from './drain-schedule.ts';
import { Endpoint } from './endpoint.ts';
import { type Completion, CQE_HAS_BUFFER, CQE_HAS_MORE, IoUring, RingMappings, type SendFields } from './io-uring.ts';
import { NativeMemory } from './native-memory.ts';
import { bindSocket, IPV4_BYTES, readSocketAddress, socketAddressBytes, writeSocketAddress } from './socket-address.ts';
import type { Bell, SystemCalls } from './system-calls.ts';

/**
 * Datagram sockets on io_uring: one system call sends and receives for all sockets of the thread. Datagrams of a
 * receiver are sent within its turn, others at the end of their task. Received ones are forwarded without a copy.
 */

const SUBMISSIONS = 1024;
const COMPLETIONS = 4096;
const BUFFERS = 1024;
const BUFFER_BYTES = 2048;
/** struct io_uring_recvmsg_out, before the address and the datagram. */
const RESULT_BYTES = 16;
const TRUNCATED = 0x20;
const ADDRESS_SLOT_BYTES = 32;
const ENOBUFS = -105;

const SEND_ID = -1;
const CANCEL_ID = -2;

export class IoUringDatagrams implements Datagrams {
  readonly name = 'io_uring';
  received = 0;
  readonly #calls: SystemCalls;
  readonly #ring: IoUring;
  readonly #schedule: DrainSchedule;
  readonly #bell: Bell;
  /** `struct msghdr` with only the length of the source address set, by family. */
  readonly #templates: Record<4 | 6, NativeMemory>;
  readonly #addresses: NativeMemory;
  /** Copies of datagrams that are not in a receive buffer. */
  readonly #outgoing: NativeMemory;
  /** By id. Ids of closed sockets are reused. */
  readonly #sockets: (IoUringSocket | null)[] = [];
  readonly #freeIds: number[] = [];
  readonly #unarmed: IoUringSocket[] = [];
  /** View of the last datagram in each buffer. */
  readonly #views: Buffer[];
  readonly #completion: Completion = { id: 0, result: 0, flags: 0, buffer: 0 };
  readonly #source = new Endpoint();
  readonly #fields: SendFields;
  readonly #flush = (): void => this.#flushNow();
  readonly #counters = { sent: 0, sendErrors: 0, receiveErrors: 0, truncated: 0, dropped: 0 };
  #forwarder: DatagramForwarder | null = null;
  /** Descriptor of each open socket, by id. */
  #descriptors = new Int32Array(64);
  #open = 0;
  #isInTurn = false;
  #isFlushDue = false;
  /** The memory shared with the kernel is unmapped, and another ring may use its addresses. */
  #isClosed = false;

  /**
   * @param mappings of the thread that this one replaces; frees them.
   * @throws the system's error if io_uring is forbidden or lacks a feature.
   */
  constructor(calls: SystemCalls, mappings = new RingMappings()) {
    this.#calls = calls;
    this.#ring = new IoUring(calls, {
      mappings,
      submissions: SUBMISSIONS,
      completions: COMPLETIONS,
      buffers: BUFFERS,
      bufferBytes: BUFFER_BYTES,
    });
    this.#ring.setNotifying(false);
    this.#bell = calls.bell(this.#ring.counter);
    this.#templates = { 4: template(calls, 4), 6: template(calls, 6) };
    this.#addresses = new NativeMemory(calls, SUBMISSIONS * ADDRESS_SLOT_BYTES);
    this.#outgoing = new NativeMemory(calls, SUBMISSIONS * BUFFER_BYTES);
    const { bytes } = this.#ring.buffers;
    this.#views = Array.from({ length: BUFFERS }, () => bytes.subarray(0, 0));
    this.#fields = {
      descriptor: 0,
      memory: this.#outgoing,
      offset: 0,
      bytes: 0,
      to: this.#addresses,
      toOffset: 0,
      toBytes: 0,
      id: SEND_ID,
    };
    this.#schedule = new DrainSchedule({
      nowMs: () => performance.now(),
      drain: () => this.#drain(),
      hasMore: () => !this.#isClosed && (this.#ring.hasCompletion || this.#ring.hasWork),
      startWaking: (onWoken) => {
        this.#ring.setNotifying(true);
        this.#bell.start(onWoken);
      },
      stopWaking: () => {
        this.#ring.setNotifying(false);
        this.#bell.stop();
      },
    });
  }

  async bind({ host, port, receive }: BindOptions): Promise<DatagramSocket> {
    const family = isIPv6(host) ? 6 : 4;
    return this.#opened({ ...bindSocket(this.#calls, host, port), family, receive });
  }

  forwardBy(forwarder: DatagramForwarder): void {
    this.#forwarder = forwarder;
  }

  dump(): unknown {
    const { name: io, received } = this;
    return { io, sockets: this.#open, received, ...this.#counters, schedule: this.#schedule.dump() };
  }

  close(): void {
    this.#isClosed = true;
    this.#schedule.stop();
    this.#bell.close();
    this.#ring.close();
  }

  send(socket: IoUringSocket, datagram: Buffer, to: Endpoint): void {
    const ring = this.#ring;
    if (!ring.makeRoom() || datagram.length > BUFFER_BYTES) {
      this.#counters.dropped += 1;
      return;
    }
    const fields = this.#fields;
    writeSocketAddress(this.#addresses.words, this.#nextTarget, socket.family, to);
    const received = ring.buffers;
    // Only within a turn: after it, the kernel may refill the buffer.
    if (this.#isInTurn && datagram.buffer === received.bytes.buffer) {
      fields.memory = received;
      fields.offset = datagram.byteOffset - received.bytes.byteOffset;
    } else {
      fields.memory = this.#outgoing;
      fields.offset = ring.nextEntry * BUFFER_BYTES;
      this.#outgoing.bytes.set(datagram, fields.offset);
    }
    this.#submit(socket.descriptor, datagram.length, socketAddressBytes(socket.family));
    this.#flushSoon();
  }

  /** Word of the address to which the next submission sends. */
  get #nextTarget(): number {
    return (this.#ring.nextEntry * ADDRESS_SLOT_BYTES) / 4;
  }

  /** Sends from the memory in `#fields` to the address at `#nextTarget`. */
  #submit(descriptor: number, bytes: number, toBytes: number): void {
    const fields = this.#fields;
    fields.descriptor = descriptor;
    fields.bytes = bytes;
    fields.toOffset = 4 * this.#nextTarget;
    fields.toBytes = toBytes;
    this.#ring.send(fields);
    this.#counters.sent += 1;
  }

  /** Stops receiving; `released` follows. */
  release(socket: IoUringSocket): void {
    if (socket.isArmed) {
      if (!this.#ring.makeRoom()) this.#ring.enter();
      this.#ring.cancel(socket.id, CANCEL_ID);
    }
    // Sends pending datagrams first.
    this.#ring.enter();
    if (!socket.isArmed) this.#forget(socket);
    else this.#schedule.soon();
  }

  #opened(options: { descriptor: number; family: 4 | 6; port: number; receive: DatagramReceiver }): DatagramSocket {
    const id = this.#freeIds.pop() ?? this.#sockets.length;
    const socket = new IoUringSocket({ ...options, id, owner: this });
    this.#sockets[id] = socket;
    if (id >= this.#descriptors.length) this.#descriptors = enlarged(this.#descriptors, id + 1);
    this.#descriptors[id] = options.descriptor;
    this.#open += 1;
    this.#arm(socket);
    this.#schedule.start();
    this.#flushSoon();
    return socket;
  }

  #arm(socket: IoUringSocket): void {
    if (!this.#ring.makeRoom()) {
      this.#unarmed.push(socket);
      return;
    }
    socket.isArmed = true;
    this.#ring.receive(socket.descriptor, this.#templates[socket.family], socket.id);
  }

  #flushSoon(): void {
    if (this.#isInTurn || this.#isFlushDue) return;
    this.#isFlushDue = true;
    queueMicrotask(this.#flush);
  }

  #flushNow(): void {
    this.#isFlushDue = false;
    if (!this.#isInTurn && !this.#isClosed) this.#ring.enter();
  }

  #drain(): number {
    if (this.#isClosed) return 0;
    const ring = this.#ring;
    const untilMs = performance.now() + MOST_MS_PER_TURN;
    let packets = 0;
    this.#isInTurn = true;
    try {
      while (!this.#isClosed && (ring.hasCompletion || ring.hasWork)) {
        if (ring.hasWork) ring.enter();
        this.#forwarder?.beginTurn();
        while (ring.hasCompletion && packets < MOST_PACKETS_PER_TURN) packets += this.#complete();
        this.#armAgain();
        if (packets >= MOST_PACKETS_PER_TURN || performance.now() >= untilMs) break;
      }
    } finally {
      this.#isInTurn = false;
    }
    // From here on the kernel may refill forwarded buffers.
    if (!this.#isClosed && ring.hasWork) ring.enter();
    return packets;
  }

  /** Handles one completion. Returns its number of datagrams. */
  #complete(): number {
    const completion = this.#completion;
    this.#ring.takeCompletion(completion);
    const { id, result, flags, buffer } = completion;
    if (id < 0) {
      if (id === SEND_ID) this.#counters.sendErrors += 1;
      return 0;
    }
    const hasDatagram = (flags & CQE_HAS_BUFFER) !== 0;
    if (hasDatagram) {
      if (result >= 0 && !this.#forward(id, buffer)) this.#hand(this.#sockets[id]!, buffer);
      this.#ring.releaseBuffer(buffer);
    }
    if ((flags & CQE_HAS_MORE) === 0) {
      const socket = this.#sockets[id]!;
      socket.isArmed = false;
      if (result < 0 && result !== ENOBUFS && !socket.isClosing) this.#counters.receiveErrors += 1;
      if (socket.isClosing) this.#forget(socket);
      else this.#unarmed.push(socket);
    }
    return hasDatagram ? 1 : 0;
  }

  #forward(id: number, buffer: number): boolean {
    const forwarder = this.#forwarder;
    if (forwarder === null) return false;
    const ring = this.#ring;
    const memory = ring.buffers;
    const { words } = memory;
    const result = (buffer * BUFFER_BYTES) / 4;
    if ((words[result + 3]! & TRUNCATED) !== 0) return false;
    const address = result + RESULT_BYTES / 4;
    const datagram = address + IPV4_BYTES / 4;
    const bytes = words[result + 2]!;
    const sender = forwarder.forward(id, memory, datagram, bytes, words[address]!, words[address + 1]!);
    if (sender < 0) return false;
    this.received += 1;
    if (!ring.makeRoom()) {
      this.#counters.dropped += 1;
      return true;
    }
    const target = this.#nextTarget;
    this.#addresses.words[target] = forwarder.destination0;
    this.#addresses.words[target + 1] = forwarder.destination1;
    this.#fields.memory = memory;
    this.#fields.offset = 4 * datagram;
    this.#submit(this.#descriptors[sender]!, bytes, IPV4_BYTES);
    return true;
  }

  #hand(socket: IoUringSocket, buffer: number): void {
    if (socket.isClosing) return;
    const { bytes, words } = this.#ring.buffers;
    const start = buffer * BUFFER_BYTES;
    const word = start / 4;
    const length = words[word + 2]!;
    if ((words[word + 3]! & TRUNCATED) !== 0) {
      this.#counters.truncated += 1;
      return;
    }
    const offset = start + RESULT_BYTES + socketAddressBytes(socket.family);
    let view = this.#views[buffer]!;
    if (view.length !== length || view.byteOffset !== bytes.byteOffset + offset) {
      view = bytes.subarray(offset, offset + length);
      this.#views[buffer] = view;
    }
    readSocketAddress(words, word + RESULT_BYTES / 4, this.#source);
    this.received += 1;
    socket.receive(view, this.#source);
  }

  #armAgain(): void {
    for (let socket = this.#unarmed.pop(); socket !== undefined; socket = this.#unarmed.pop()) {
      if (socket.isClosing) continue;
      this.#arm(socket);
      if (!socket.isArmed) return;
    }
  }

  #forget(socket: IoUringSocket): void {
    this.#calls.close(socket.descriptor);
    this.#sockets[socket.id] = null;
    this.#freeIds.push(socket.id);
    this.#open -= 1;
    if (this.#open === 0) this.#schedule.stop();
    socket.released();
  }
}

interface IoUringSocketOptions {
  id: number;
  descriptor: number;
  family: 4 | 6;
  port: number;
  receive: DatagramReceiver;
  owner: IoUringDatagrams;
}

class IoUringSocket implements DatagramSocket {
  readonly id: number;
  readonly descriptor: number;
  readonly family: 4 | 6;
  readonly port: number;
  readonly receive: DatagramReceiver;
  /** A request in the kernel refers to the socket. */
  isArmed = false;
  readonly #owner: IoUringDatagrams;
  readonly #closed = Promise.withResolvers<void>();
  #isClosing = false;

  constructor(options: IoUringSocketOptions) {
    this.id = options.id;
    this.descriptor = options.descriptor;
    this.family = options.family;
    this.port = options.port;
    this.receive = options.receive;
    this.#owner = options.owner;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  get forwardId(): number | null {
    return this.family === 4 ? this.id : null;
  }

  released(): void {
    this.#closed.resolve();
  }

  send(datagram: Buffer, to: Endpoint): void {
    if (!this.#isClosing && to.port !== 0) this.#owner.send(this, datagram, to);
  }

  close(): Promise<void> {
    if (!this.#isClosing) {
      this.#isClosing = true;
      this.#owner.release(this);
    }
    return this.#closed.promise;
  }
}

function template(calls: SystemCalls, family: 4 | 6): NativeMemory {
  const memory = new NativeMemory(calls, 56);
  memory.words[2] = socketAddressBytes(family);
  return memory;
}
