import { ProcessError } from '../../../runtime/supervised-process.ts';

/** What the library said before it ended its process. Only for while it loads: later it may quote what is spoken. */
export function lastWords(cause: unknown): string | null {
  if (!(cause instanceof ProcessError)) return null;
  const said = cause.output.split('\n').findLast((line) => /what\(\):|Error|\.(?:cc|h):/.test(line));
  return said?.trim().slice(0, 300) ?? null;
}
