import { closeSync, openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Socket, type SocketConstructorOpts } from 'node:net';
import { endianness } from 'node:os';
import { getSystemErrorMessage, getSystemErrorName } from 'node:util';

/**
 * Linux system calls that Node lacks, through the optional `koffi`. Numbers and structures are those of 64-bit
 * little-endian machines. Addresses are numbers, because user space ends far below 2^53.
 */

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0x800;
const SOCK_CLOEXEC = 0x8_0000;
const EFD_NONBLOCK = 0x800;
const EFD_CLOEXEC = 0x8_0000;
const EPOLL_CLOEXEC = 0x8_0000;
const EPOLL_CTL_ADD = 1;
const EPOLLIN = 1;
/** O_NONBLOCK and O_CLOEXEC. */
const PIPE_FLAGS = 0x8_0800;
const COUNTER_BYTES = 8;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const ARCHITECTURES = ['x64', 'arm64'];

type NumericCall = (...values: number[]) => number;

/** Calls back when an event counter is raised, and resets it. */
export interface Bell {
  start(onRung: () => void): void;
  stop(): void;
  close(): void;
}

export interface SystemCalls {
  /** `syscall(2)` with six arguments. Returns the result or a negative error number. */
  syscall(number: number, ...values: [number, number, number, number, number, number]): number;
  /** Maps a file. Returns the address. @throws the system's error. */
  map(descriptor: number, bytes: number, offset: number): number;
  unmap(address: number, bytes: number): void;
  /** The memory at an address, valid while it is mapped. */
  view(address: number, bytes: number): ArrayBuffer;
  addressOf(memory: ArrayBuffer): number;
  /**
   * Moves a new descriptor to a number that Node has opened, and returns it. Node then closes it when the thread is
   * terminated; otherwise its port would stay taken until the process ends.
   */
  own(descriptor: number): number;
  /** Opens a UDP socket. @throws the system's error. */
  socket(family: 4 | 6): number;
  /** @throws the system's error. */
  bind(descriptor: number, socketAddress: Uint8Array): void;
  /** Writes the address of a socket into `socketAddress`. @throws the system's error. */
  nameOf(descriptor: number, socketAddress: Uint8Array): void;
  /** An empty set of epoll(7). @throws the system's error. */
  epoll(): number;
  /** Adds a descriptor, reported as `id` when it is readable. @throws the system's error. */
  epollAdd(epoll: number, descriptor: number, id: number): void;
  /** Writes readable descriptors to `events` without waiting. Returns their number, or -1. */
  epollWait(epoll: number, events: number, most: number): number;
  /** `recvmmsg(2)` and `sendto(2)` without waiting, on memory addresses. Negative on failure. */
  receiveMany(descriptor: number, messages: number, most: number): number;
  sendTo(descriptor: number, data: number, bytes: number, address: number, addressBytes: number): number;
  /** A non-blocking counter. @throws the system's error. */
  eventCounter(): number;
  bell(counter: number): Bell;
  close(descriptor: number): void;
}

/** @throws Error with a reason in plain words. */
export function openSystemCalls(): SystemCalls {
  if (process.platform !== 'linux') throw new Error('this needs Linux');
  if (!ARCHITECTURES.includes(process.arch) || endianness() !== 'LE') {
    throw new Error(`this needs a machine of ${ARCHITECTURES.join(' or ')}`);
  }
  const koffi = requireKoffi();
  const library = koffi.load(null);
  const numeric = (name: string, answer: string, values: string[]): NumericCall => library.func(name, answer, values);
  const syscall = numeric('syscall', 'int64_t', ['int64_t', ...Array<string>(6).fill('uintptr_t')]);
  const mmap = numeric('mmap', 'uintptr_t', ['uintptr_t', 'size_t', 'int', 'int', 'int', 'int64_t']);
  const munmap = numeric('munmap', 'int', ['uintptr_t', 'size_t']);
  const socket = numeric('socket', 'int', ['int', 'int', 'int']);
  const dup3 = numeric('dup3', 'int', ['int', 'int', 'int']);
  const close = numeric('close', 'int', ['int']);
  const eventfd = numeric('eventfd', 'int', ['uint', 'int']);
  const epollCreate = numeric('epoll_create1', 'int', ['int']);
  const epollControl: (epoll: number, operation: number, descriptor: number, event: Uint8Array) => number =
    library.func('int epoll_ctl(int, int, int, void *)');
  const epollWait = numeric('epoll_wait', 'int', ['int', 'uintptr_t', 'int', 'int']);
  const recvmmsg = numeric('recvmmsg', 'int', ['int', 'uintptr_t', 'uint', 'int', 'uintptr_t']);
  const sendto = numeric('sendto', 'int', ['int', 'uintptr_t', 'size_t', 'int', 'uintptr_t', 'uint']);
  const bind: (descriptor: number, address: Uint8Array, bytes: number) => number =
    library.func('int bind(int, void *, uint)');
  const getsockname: (descriptor: number, address: Uint8Array, bytes: Uint8Array) => number = library.func(
    'int getsockname(int, void *, void *)',
  );
  const pipe2: (ends: Int32Array, flags: number) => number = library.func('int pipe2(void *, int)');

  const checked = (result: number, call: string): number => {
    if (result >= 0) return result;
    throw systemError(koffi.errno(), call);
  };
  return {
    syscall: (number, ...values) => {
      const result = syscall(number, ...values);
      return result < 0 ? -koffi.errno() : result;
    },
    map(descriptor, bytes, offset) {
      const address = mmap(0, bytes, PROT_READ_WRITE, MAP_SHARED_POPULATE, descriptor, offset);
      if (address >= Number.MAX_SAFE_INTEGER) throw systemError(koffi.errno(), 'mmap');
      return address;
    },
    unmap: (address, bytes) => {
      munmap(address, bytes);
    },
    view: (address, bytes) => koffi.view(address, bytes),
    addressOf: (memory) => Number(koffi.address(new Uint8Array(memory))),
    socket(family) {
      const flags = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
      return own(checked(socket(family === 6 ? AF_INET6 : AF_INET, flags, 0), 'socket'));
    },
    bind(descriptor, socketAddress) {
      checked(bind(descriptor, socketAddress, socketAddress.length), 'bind');
    },
    nameOf(descriptor, socketAddress) {
      const bytes = Uint8Array.of(socketAddress.length, 0, 0, 0);
      checked(getsockname(descriptor, socketAddress, bytes), 'getsockname');
    },
    epoll: () => own(checked(epollCreate(EPOLL_CLOEXEC), 'epoll_create1')),
    epollAdd(epoll, descriptor, id) {
      const event = new DataView(new ArrayBuffer(16));
      event.setUint32(0, EPOLLIN, true);
      event.setUint32(process.arch === 'x64' ? 4 : 8, id, true);
      checked(epollControl(epoll, EPOLL_CTL_ADD, descriptor, new Uint8Array(event.buffer)), 'epoll_ctl');
    },
    epollWait: (epoll, events, most) => epollWait(epoll, events, most, 0),
    receiveMany: (descriptor, messages, most) => recvmmsg(descriptor, messages, most, MSG_DONTWAIT, 0),
    sendTo: (descriptor, data, bytes, address, addressBytes) =>
      sendto(descriptor, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, address, addressBytes),
    own,
    eventCounter: () => own(checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), 'eventfd')),
    bell(counter) {
      let socket: Socket | null = null;
      let isStarted = false;
      let ring: () => void = () => {};
      return {
        start(onRung) {
          ring = onRung;
          isStarted = true;
          socket ??= socketOn(counter, () => {
            if (isStarted) ring();
          });
          socket.resume();
        },
        stop() {
          isStarted = false;
          socket?.pause();
        },
        close() {
          isStarted = false;
          socket?.destroy();
          socket = null;
        },
      };
    },
    close: closeSync,
  };

  /**
   * The counter replaces a descriptor that Node reads as a pipe. A poll handle of koffi would be simpler, but it ends
   * the process if its thread dies just as the handle calls back.
   */
  function socketOn(counter: number, onRung: () => void): Socket {
    const ends = new Int32Array(2);
    checked(pipe2(ends, PIPE_FLAGS), 'pipe2');
    const [readEnd, writeEnd] = ends as unknown as [number, number];
    const ring = (): boolean => {
      onRung();
      return true;
    };
    const onread = { buffer: new Uint8Array(COUNTER_BYTES), callback: ring };
    const socket = new Socket({ fd: readEnd, readable: true, writable: false, onread } as SocketConstructorOpts);
    checked(dup3(counter, readEnd, SOCK_CLOEXEC), 'dup3');
    close(writeEnd);
    return socket;
  }

  function own(descriptor: number): number {
    const ours = openSync('/dev/null', 'r');
    try {
      checked(dup3(descriptor, ours, SOCK_CLOEXEC), 'dup3');
    } finally {
      close(descriptor);
    }
    return ours;
  }
}

const PROT_READ_WRITE = 3;
const MAP_SHARED_POPULATE = 0x8001;

/** An error like Node's, with `code`. */
export function systemError(errorNumber: number, call: string): NodeJS.ErrnoException {
  const code = getSystemErrorName(-errorNumber);
  const error: NodeJS.ErrnoException = new Error(`${call} ${code}: ${getSystemErrorMessage(-errorNumber)}`);
  return Object.assign(error, { code, errno: -errorNumber, syscall: call });
}

function requireKoffi(): typeof import('koffi') {
  try {
    return createRequire(import.meta.url)('koffi');
  } catch (cause) {
    throw new Error('the optional package koffi is not installed', { cause });
  }
}
