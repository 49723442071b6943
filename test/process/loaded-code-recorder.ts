import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { threadId } from 'node:worker_threads';

/**
 * Preloaded with `NODE_OPTIONS` into every thread of a server: records each module, and each WebAssembly module with
 * the file that compiled it.
 */
export interface LoadedCode {
  pid: number;
  threadId: number;
  kind: 'module' | 'wasm';
  /** The module, or the file that compiled the WebAssembly; null when no file did. */
  url: string | null;
}

type AnyFunction = (...args: unknown[]) => unknown;

const log = process.env.LOADED_CODE_LOG;
if (log !== undefined) {
  const record = (kind: LoadedCode['kind'], url: string | null) =>
    appendFileSync(log, `${JSON.stringify({ pid: process.pid, threadId, kind, url } satisfies LoadedCode)}\n`);
  registerHooks({
    load(url, context, nextLoad) {
      record('module', url);
      return nextLoad(url, context);
    },
  });
  const wasm = (globalThis as typeof globalThis & { WebAssembly: Record<string, AnyFunction> }).WebAssembly;
  for (const name of ['Module', 'compile', 'compileStreaming', 'instantiate', 'instantiateStreaming']) {
    wasm[name] = new Proxy(wasm[name]!, {
      construct(target, args, newTarget) {
        record('wasm', callerOf(new Error().stack));
        return Reflect.construct(target, args, newTarget);
      },
      apply(target, self, args) {
        record('wasm', callerOf(new Error().stack));
        return Reflect.apply(target, self, args);
      },
    });
  }
}

/** The first other file in a stack. */
function callerOf(stack = ''): string | null {
  const files = [...stack.matchAll(/((?:file:\/\/)?\/[^()\n]+?):\d+:\d+/g)].map((match) => match[1]!);
  return files.find((file) => !file.endsWith(import.meta.filename)) ?? null;
}
