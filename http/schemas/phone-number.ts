import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { validationFailed } from '../validation.ts';

/**
 * An Indian mobile number as people write it, to +E.164: `+91XXXXXXXXXX`, `91XXXXXXXXXX` or ten digits that start
 * with 6 to 9. Ten digits that begin with 91 are a ten-digit number. Null for anything else.
 */
export function normaliseIndianMobile(input: unknown): string | null {
  const match = /^(?:\+?91)?([6-9]\d{9})$/.exec(withoutSeparators(input));
  return match ? `+91${match[1]}` : null;
}

/** The filter of a query or a body. @throws TandemError VALIDATION_FAILED */
export function readMobile(path: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const number = normaliseIndianMobile(text);
  if (number === null) throw validationFailed([{ path, message: 'must be an Indian mobile number' }]);
  return number;
}

/** Any number in +E.164 (ITU-T E.164: at most 15 digits, no leading zero); separators are stripped. Null otherwise. */
export function normaliseE164(input: unknown): string | null {
  const text = withoutSeparators(input);
  return E164.test(text) ? text : null;
}

/** Seven digits are the shortest subscriber numbers in use with a country code. */
const E164 = /^\+[1-9]\d{6,14}$/;

/** Spaces, hyphens, dots and brackets; whatever else is not a digit stays, and is refused. */
function withoutSeparators(input: unknown): string {
  return typeof input === 'string' && input.length <= 64 ? input.replace(/[ \-.()[\]]/g, '') : '';
}

export const E164Schema = Type.String({ description: '+E.164', examples: ['+919812345678'] });

export const IndianMobileSchema = Type.String({
  description:
    'Indian mobile number: `+91XXXXXXXXXX`, `91XXXXXXXXXX` or ten digits starting with 6 to 9. Spaces, hyphens, dots and brackets are stripped.',
  examples: ['+919812345678', '98123 45678'],
});

/** @throws TandemError INVALID_NUMBER naming the field. */
export function requireE164(field: string, input: unknown): string {
  const e164 = normaliseE164(input);
  if (e164 !== null) return e164;
  const message = 'must be a number in +E.164';
  throw new TandemError('INVALID_NUMBER', `${field} ${message}.`, { details: [{ path: field, message }] });
}
