import { ProcessError } from '../../../runtime/supervised-process.ts';

/**
 * The library's error output before it exited its process. Only use it during loading: later output may quote speech.
 */
export function lastWords(cause: unknown): string | null {
  if (!(cause instanceof ProcessError)) return null;
  const said = cause.output.split('\n').findLast((line) => /what\(\):|Error|\.(?:cc|h):/.test(line));
  return said?.trim().slice(0, 300) ?? null;
}
