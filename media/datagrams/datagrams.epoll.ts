import { isIPv6 } from 'node:net';
import type { BindOptions, DatagramForwarder, DatagramReceiver, DatagramSocket, Datagrams } from './datagrams.ts';
import { DrainSchedule, MOST_MS_PER_TURN, MOST_PACKETS_PER_TURN } from './drain-schedule.ts';
import { Endpoint } from './endpoint.ts';
import { NativeMemory } from './native-memory.ts';
import { PollContext, ReadinessPoll } from './readiness-poll.ts';
import {
  bindSocket,
  IPV4_BYTES,
  IPV6_BYTES,
  readSocketAddress,
  socketAddressBytes,
  writeSocketAddress,
} from './socket-address.ts';
import type { SystemCalls } from './system-calls.ts';

/**
 * Datagram sockets on epoll(7), for systems that forbid io_uring. One system call finds all sockets with packets, one
 * receives a socket's packets, and one sends. Memory is preallocated.
 */

const BATCH = 8;
const BUFFER_BYTES = 2048;
const MOST_EVENTS = 256;
/** struct mmsghdr, struct iovec and struct sockaddr_in6 of a 64-bit machine, in words. */
const MESSAGE_WORDS = 16;
const VECTOR_WORDS = 4;
const ADDRESS_WORDS = 8;
/** struct epoll_event is packed on x64. */
const EVENT_WORDS = process.arch === 'x64' ? 3 : 4;
const EVENT_DATA_WORD = process.arch === 'x64' ? 1 : 2;
const MSG_TRUNC = 0x20;

export class EpollDatagrams implements Datagrams {
  readonly name = 'epoll';
  received = 0;
  readonly #calls: SystemCalls;
  readonly #epoll: number;
  readonly #schedule: DrainSchedule;
  readonly #readiness: ReadinessPoll;
  /** One message header per buffer, then one iovec per buffer. */
  readonly #messages: NativeMemory;
  readonly #buffers: NativeMemory;
  readonly #addresses: NativeMemory;
  readonly #events: NativeMemory;
  /** The datagram being sent and its target. The kernel copies both in the call. */
  readonly #outgoing: NativeMemory;
  readonly #target: NativeMemory;
  /** By id. Ids of closed sockets are reused. */
  readonly #sockets: (EpollSocket | null)[] = [];
  readonly #freeIds: number[] = [];
  /** View of the last datagram in each buffer. */
  readonly #views: Buffer[];
  readonly #source = new Endpoint();
  readonly #counters = { sent: 0, sendErrors: 0, receiveErrors: 0, truncated: 0, dropped: 0 };
  #forwarder: DatagramForwarder | null = null;
  #open = 0;
  #hasMore = false;

  /** @throws the system's error. */
  constructor(calls: SystemCalls, context = new PollContext()) {
    this.#calls = calls;
    this.#epoll = calls.epoll();
    try {
      this.#readiness = new ReadinessPoll(calls, this.#epoll, context);
    } catch (error) {
      calls.close(this.#epoll);
      throw error;
    }
    this.#messages = new NativeMemory(calls, 4 * BATCH * (MESSAGE_WORDS + VECTOR_WORDS));
    const messages = this.#messages;
    this.#addresses = new NativeMemory(calls, 4 * BATCH * ADDRESS_WORDS);
    this.#buffers = new NativeMemory(calls, BATCH * BUFFER_BYTES);
    this.#events = new NativeMemory(calls, 4 * MOST_EVENTS * EVENT_WORDS);
    this.#outgoing = new NativeMemory(calls, BUFFER_BYTES);
    this.#target = new NativeMemory(calls, IPV6_BYTES);
    for (let slot = 0; slot < BATCH; slot++) {
      const vector = BATCH * MESSAGE_WORDS + VECTOR_WORDS * slot;
      this.#addresses.pointFrom(messages, MESSAGE_WORDS * slot, 4 * ADDRESS_WORDS * slot);
      messages.pointFrom(messages, MESSAGE_WORDS * slot + 4, 4 * vector);
      messages.words[MESSAGE_WORDS * slot + 6] = 1;
      this.#buffers.pointFrom(messages, vector, BUFFER_BYTES * slot);
      messages.words[vector + 2] = BUFFER_BYTES;
    }
    this.#views = Array.from({ length: BATCH }, () => this.#buffers.bytes.subarray(0, 0));
    this.#schedule = new DrainSchedule({
      nowMs: () => performance.now(),
      drain: () => this.#drain(),
      hasMore: () => this.#hasMore,
      startWaking: (onWoken) => this.#readiness.start(onWoken),
      stopWaking: () => this.#readiness.stop(),
    });
  }

  async bind({ host, port, receive }: BindOptions): Promise<DatagramSocket> {
    const family = isIPv6(host) ? 6 : 4;
    const bound = bindSocket(this.#calls, host, port);
    const id = this.#freeIds.pop() ?? this.#sockets.length;
    try {
      this.#calls.epollAdd(this.#epoll, bound.descriptor, id);
    } catch (error) {
      this.#freeIds.push(id);
      this.#sockets[id] = null;
      this.#calls.close(bound.descriptor);
      throw error;
    }
    const socket = new EpollSocket({ ...bound, id, family, receive, owner: this });
    this.#sockets[id] = socket;
    this.#open += 1;
    this.#schedule.start();
    return socket;
  }

  forwardBy(forwarder: DatagramForwarder): void {
    this.#forwarder = forwarder;
  }

  dump(): unknown {
    const { name: io, received } = this;
    return { io, sockets: this.#open, received, ...this.#counters, schedule: this.#schedule.dump() };
  }

  close(): void {
    this.#schedule.stop();
    this.#readiness.close();
    this.#calls.close(this.#epoll);
  }

  send({ descriptor, family }: EpollSocket, datagram: Buffer, to: Endpoint): void {
    if (datagram.length > BUFFER_BYTES) {
      this.#counters.dropped += 1;
      return;
    }
    let memory = this.#buffers;
    let offset = datagram.byteOffset - memory.bytes.byteOffset;
    if (datagram.buffer !== memory.bytes.buffer) {
      memory = this.#outgoing;
      offset = 0;
      memory.bytes.set(datagram);
    }
    writeSocketAddress(this.#target.words, 0, family, to);
    this.#sendToTarget(descriptor, memory.address + offset, datagram.length, socketAddressBytes(family));
  }

  #sendToTarget(descriptor: number, address: number, bytes: number, targetBytes: number): void {
    const sent = this.#calls.sendTo(descriptor, address, bytes, this.#target.address, targetBytes);
    if (sent < 0) this.#counters.sendErrors += 1;
    else this.#counters.sent += 1;
  }

  release(socket: EpollSocket): void {
    // Closing removes it from the epoll set.
    this.#calls.close(socket.descriptor);
    this.#sockets[socket.id] = null;
    this.#freeIds.push(socket.id);
    this.#open -= 1;
    if (this.#open === 0) this.#schedule.stop();
  }

  #drain(): number {
    const untilMs = performance.now() + MOST_MS_PER_TURN;
    let packets = 0;
    for (;;) {
      this.#forwarder?.beginTurn();
      const ready = this.#calls.epollWait(this.#epoll, this.#events.address, MOST_EVENTS);
      for (let event = 0; event < ready; event++) {
        const socket = this.#sockets[this.#events.words[EVENT_WORDS * event + EVENT_DATA_WORD]!];
        if (socket != null) packets += this.#receive(socket);
      }
      this.#hasMore = false;
      // A receiver may have closed all sockets.
      if (ready < MOST_EVENTS || this.#open === 0) return packets;
      this.#hasMore = true;
      if (packets >= MOST_PACKETS_PER_TURN || performance.now() >= untilMs) return packets;
    }
  }

  /** Receives one batch. Further datagrams wait until the other sockets had their turn. */
  #receive(socket: EpollSocket): number {
    const { words } = this.#messages;
    for (let slot = 0; slot < BATCH; slot++) words[MESSAGE_WORDS * slot + 2] = IPV6_BYTES;
    const count = this.#calls.receiveMany(socket.descriptor, this.#messages.address, BATCH);
    if (count < 0) {
      this.#counters.receiveErrors += 1;
      return 0;
    }
    for (let slot = 0; slot < count && !socket.isClosing; slot++) this.#hand(socket, slot);
    return count;
  }

  #hand(socket: EpollSocket, slot: number): void {
    const { words } = this.#messages;
    if ((words[MESSAGE_WORDS * slot + 12]! & MSG_TRUNC) !== 0) {
      this.#counters.truncated += 1;
      return;
    }
    const length = words[MESSAGE_WORDS * slot + 14]!;
    if (this.#forward(socket.id, slot, length)) return;
    let view = this.#views[slot]!;
    if (view.length !== length) {
      view = this.#buffers.bytes.subarray(BUFFER_BYTES * slot, BUFFER_BYTES * slot + length);
      this.#views[slot] = view;
    }
    readSocketAddress(this.#addresses.words, ADDRESS_WORDS * slot, this.#source);
    this.received += 1;
    socket.receive(view, this.#source);
  }

  #forward(id: number, slot: number, bytes: number): boolean {
    const forwarder = this.#forwarder;
    if (forwarder === null) return false;
    const offset = BUFFER_BYTES * slot;
    const { words } = this.#addresses;
    const source = ADDRESS_WORDS * slot;
    const sender = forwarder.forward(id, this.#buffers, offset / 4, bytes, words[source]!, words[source + 1]!);
    if (sender < 0) return false;
    this.received += 1;
    const target = this.#target.words;
    target[0] = forwarder.destination0;
    target[1] = forwarder.destination1;
    this.#sendToTarget(this.#sockets[sender]!.descriptor, this.#buffers.address + offset, bytes, IPV4_BYTES);
    return true;
  }
}

interface EpollSocketOptions {
  id: number;
  descriptor: number;
  family: 4 | 6;
  port: number;
  receive: DatagramReceiver;
  owner: EpollDatagrams;
}

class EpollSocket implements DatagramSocket {
  readonly id: number;
  readonly descriptor: number;
  readonly family: 4 | 6;
  readonly port: number;
  readonly receive: DatagramReceiver;
  isClosing = false;
  readonly #owner: EpollDatagrams;

  constructor(options: EpollSocketOptions) {
    this.id = options.id;
    this.descriptor = options.descriptor;
    this.family = options.family;
    this.port = options.port;
    this.receive = options.receive;
    this.#owner = options.owner;
  }

  get forwardId(): number | null {
    return this.family === 4 ? this.id : null;
  }

  send(datagram: Buffer, to: Endpoint): void {
    if (!this.isClosing && to.port !== 0) this.#owner.send(this, datagram, to);
  }

  async close(): Promise<void> {
    if (this.isClosing) return;
    this.isClosing = true;
    this.#owner.release(this);
  }
}
