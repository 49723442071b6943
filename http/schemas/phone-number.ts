import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { validationFailed } from '../validation.ts';

/**
 * Normalises an Indian mobile number to E.164: `+91XXXXXXXXXX`, `91XXXXXXXXXX` or ten digits that start with 6 to 9.
 * Ten digits that start with 91 are a number without country code. Null if invalid.
 */
export function normaliseIndianMobile(input: unknown): string | null {
  const match = /^(?:\+?91)?([6-9]\d{9})$/.exec(withoutSeparators(input));
  return match ? `+91${match[1]}` : null;
}

/** Parses the number filter of a query or a body. @throws TandemError VALIDATION_FAILED */
export function readMobile(path: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const number = normaliseIndianMobile(text);
  if (number === null) {
    throw validationFailed([{ path, message: 'must be an Indian mobile number, such as +919812345678' }]);
  }
  return number;
}

/** Normalises any number to E.164 (at most 15 digits, no leading zero) and strips separators. Null if invalid. */
export function normaliseE164(input: unknown): string | null {
  const text = withoutSeparators(input);
  return E164.test(text) ? text : null;
}

/** The shortest subscriber numbers in use have seven digits with country code. */
const E164 = /^\+[1-9]\d{6,14}$/;

/** Strips spaces, hyphens, dots and brackets. Any other non-digit stays, and fails validation. */
function withoutSeparators(input: unknown): string {
  return typeof input === 'string' && input.length <= 64 ? input.replace(/[ \-.()[\]]/g, '') : '';
}

export const E164Schema = Type.String({ description: 'Phone number in E.164 format.', examples: ['+919812345678'] });

export const INDIAN_MOBILE_FORMATS =
  'Indian mobile number: `+91XXXXXXXXXX`, `91XXXXXXXXXX`, or ten digits starting with 6 to 9. Spaces, hyphens, dots and brackets are ignored.';

export const IndianMobileSchema = Type.String({
  description: INDIAN_MOBILE_FORMATS,
  examples: ['+919812345678', '98123 45678'],
});

/** @throws TandemError INVALID_NUMBER naming the field. */
export function requireE164(field: string, input: unknown): string {
  const e164 = normaliseE164(input);
  if (e164 !== null) return e164;
  const message = 'must be a phone number in E.164 format, such as +912240000001';
  throw new TandemError('INVALID_NUMBER', `${field} ${message}.`, { details: [{ path: field, message }] });
}
