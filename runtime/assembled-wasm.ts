/** The used part of the global `WebAssembly`, whose types come only with those of browsers. */
interface WebAssemblyOfNode {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: object };
}

const { Module, Instance } = (globalThis as unknown as { WebAssembly: WebAssemblyOfNode }).WebAssembly;

export interface WasmMemory {
  /** Replaced when the memory grows. */
  readonly buffer: ArrayBuffer;
  grow(pages: number): void;
}

/** Compiles a small module, kept as base64 beside its `.wat` source. Each call of the result creates an instance. */
export function compileWasm<Exports extends object>(base64: string): () => Exports {
  const module = new Module(Buffer.from(base64, 'base64'));
  return () => new Instance(module).exports as Exports;
}
