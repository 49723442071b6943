import { validationFailed } from '../validation.ts';

const MUST = 'must be the IANA name of a time zone, such as Asia/Kolkata';

/** @throws TandemError VALIDATION_FAILED */
export function requireTimeZone(path: string, name: string): string {
  // Offsets such as +05:30 are not names.
  if (!/^[A-Za-z][\w+\-/]*$/.test(name)) throw unknownTimeZone(path);
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
  } catch {
    throw unknownTimeZone(path);
  }
  return name;
}

export function unknownTimeZone(path: string) {
  return validationFailed([{ path, message: MUST }]);
}
