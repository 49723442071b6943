/** Whether it is that there was no memory left for a buffer: V8 and WebAssembly have no code for it. */
export function isOutOfMemory(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  if (code === 'ERR_MEMORY_ALLOCATION_FAILED') return true;
  return /allocation failed|out of memory|invalid array buffer length|invalid string length/i.test(message ?? '');
}
