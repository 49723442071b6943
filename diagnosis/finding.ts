export interface Finding {
  /** Name of the check, such as `SIP port`. */
  check: string;
  status: 'ok' | 'warn' | 'fail';
  message: string;
  /** Advice; null if the check is ok. */
  advice: string | null;
}

export function ok(check: string, message: string): Finding {
  return { check, status: 'ok', message, advice: null };
}

/** It works, but poorly or not for long. */
export function warn(check: string, message: string, advice: string): Finding {
  return { check, status: 'warn', message, advice };
}

/** The server does not start, or cannot do its work. */
export function fail(check: string, message: string, advice: string): Finding {
  return { check, status: 'fail', message, advice };
}

export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return (error.message || code || error.name).split('\n')[0]!;
}
