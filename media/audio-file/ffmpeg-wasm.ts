import { readFileSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Program behind `BUNDLED_FFMPEG`: runs the WebAssembly build. The arguments must contain `-i file:<path>` and end with
 * `pipe:1`. Holds the input in memory and streams the output.
 */
const MOST_MEMORY_BYTES = 2 ** 30;
const PAGE_BYTES = 65_536;
const STDOUT_FD = 1;

/** The used part of Emscripten's module. */
interface FfmpegCore {
  FS: {
    writeFile(path: string, bytes: Uint8Array, options: { canOwn: boolean }): void;
    makedev(major: number, minor: number): number;
    registerDevice(device: number, operations: object): void;
    mkdev(path: string, device: number): void;
  };
  setLogger(logger: (line: { message: string }) => void): void;
  exec(...args: string[]): number;
}
interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}
type MakeCore = (options: { wasmBinary: Uint8Array }) => Promise<FfmpegCore>;

capMemory();
// The build expects the globals of a browser worker.
Object.assign(globalThis, { self: { location: { href: 'file:///' } } });
const core = await loadCore();
const args = process.argv.slice(2);
const inputAt = args.indexOf('-i') + 1;
core.FS.writeFile('/input', readFileSync(args[inputAt]!.replace(/^file:/, '')), { canOwn: true });
const device = core.FS.makedev(64, 0);
core.FS.registerDevice(device, { open: () => {}, close: () => {}, write: writeOut });
core.FS.mkdev('/output', device);
core.setLogger(({ message }) => writeSync(2, `${message}\n`));
process.exitCode = core.exec(...args.with(inputAt, 'file:/input').with(-1, 'file:/output'));

/** A failed write, because the reader is gone, ends the program. */
function writeOut(_stream: unknown, buffer: Int8Array, offset: number, length: number): number {
  let written = 0;
  while (written < length) written += writeSync(STDOUT_FD, buffer, offset + written, length - written);
  return length;
}

async function loadCore(): Promise<FfmpegCore> {
  const { default: makeCore } = (await import(import.meta.resolve('@ffmpeg/core'))) as { default: MakeCore };
  return await makeCore({ wasmBinary: readFileSync(fileURLToPath(import.meta.resolve('@ffmpeg/core/wasm'))) });
}

/** A file that needs more memory fails like a damaged one. */
function capMemory(): void {
  const { prototype } = (globalThis as unknown as { WebAssembly: { Memory: { prototype: Memory } } }).WebAssembly
    .Memory;
  const { grow } = prototype;
  prototype.grow = function (pages) {
    if (this.buffer.byteLength + pages * PAGE_BYTES > MOST_MEMORY_BYTES) throw new RangeError('out of memory');
    return grow.call(this, pages);
  };
}
