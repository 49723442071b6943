import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js/max';
import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { validationFailed } from '../validation.ts';

/**
 * Normalises an Indian mobile number to E.164: `+91XXXXXXXXXX`, `91XXXXXXXXXX` or ten digits starting with 6 to 9. Ten
 * digits starting with 91 have no country code. Null if invalid.
 */
export function normaliseIndianMobile(input: unknown): string | null {
  const match = /^(?:\+?91)?([6-9]\d{9})$/.exec(withoutSeparators(input));
  return match ? `+91${match[1]}` : null;
}

/**
 * Callable countries: the setting NUMBER_PLAN. A number without a plus sign has the national notation of the first
 * country; `any` has none.
 */
export type NumberPlan = 'any' | readonly CountryCode[];

/**
 * Normalises a callable number to E.164. India in a list means Indian mobile numbers, as in the API reference. Other
 * numbers must be assignable in their country, which excludes emergency and short numbers. Null if invalid or of
 * another country.
 */
export function normaliseCallable(input: unknown, plan: NumberPlan): string | null {
  const text = withoutSeparators(input);
  const [home] = plan === 'any' ? [] : plan;
  const isInternational = text.startsWith('+');
  if (plan !== 'any' && (isInternational ? text.startsWith('+91') && plan.includes('IN') : home === 'IN')) {
    return normaliseIndianMobile(text);
  }
  // The library would also accept letters, extensions and other scripts.
  if (!/^\+?\d{5,17}$/.test(text) || (!isInternational && home === undefined)) return null;
  const number = parsePhoneNumberFromString(text, { extract: false, ...(home && { defaultCountry: home }) });
  if (!number?.isValid() || !E164.test(number.number)) return null;
  // Countries share calling codes, such as +1, so check the country instead of the code.
  return plan === 'any' || (number.country && plan.includes(number.country)) ? number.number : null;
}

/** Number types that cost the caller extra or have no human callee. */
const SPECIAL_TYPES: ReadonlySet<string | undefined> = new Set([
  'PREMIUM_RATE',
  'SHARED_COST',
  'PAGER',
  'VOICEMAIL',
  'UAN',
]);

/**
 * Parses a number to verify by a call: any ordinary number of the plan's countries, fixed lines too.
 * @throws TandemError VALIDATION_FAILED
 */
export function requireVerifiable(path: string, text: string, plan: NumberPlan): string {
  const e164 = requireE164(path, text);
  const number = parsePhoneNumberFromString(e164, { extract: false });
  const isOfPlan = plan === 'any' || (number?.country !== undefined && plan.includes(number.country));
  if (number?.isValid() && isOfPlan && !SPECIAL_TYPES.has(number.getType())) return e164;
  const countries = plan === 'any' ? 'any country' : plan.join(', ');
  const message = `must be an ordinary fixed or mobile number of ${countries}. Ask the operator to verify others.`;
  throw validationFailed([{ path, message }]);
}

/** Parses a number filter. @throws TandemError VALIDATION_FAILED */
export function readCallable(path: string, text: string | undefined, plan: NumberPlan): string | undefined {
  if (text === undefined) return undefined;
  const number = normaliseCallable(text, plan);
  if (number === null) throw validationFailed([{ path, message: expectedNumber(plan) }]);
  return number;
}

/** Completes an error message: the field "must be ...". */
export function expectedNumber(plan: NumberPlan): string {
  if (plan === 'any') return 'must be a valid phone number with its country code, such as +442079460958';
  if (plan.length === 1 && plan[0] === 'IN') return 'must be an Indian mobile number, such as +919812345678';
  const countries = plan.map((country) => (country === 'IN' ? 'IN (mobile)' : country)).join(', ');
  return `must be a valid phone number of ${countries}, such as +442079460958 of GB`;
}

/** Normalises any number to E.164 (at most 15 digits, no leading zero). Null if invalid. */
export function normaliseE164(input: unknown): string | null {
  const text = withoutSeparators(input);
  return E164.test(text) ? text : null;
}

/** The shortest subscriber numbers in use have seven digits with country code. */
const E164 = /^\+[1-9]\d{6,14}$/;

/** Removes spaces, hyphens, dots and brackets. Other characters fail validation later. */
function withoutSeparators(input: unknown): string {
  return typeof input === 'string' && input.length <= 64 ? input.replace(/[ \-.()[\]]/g, '') : '';
}

export const E164Schema = Type.String({ description: 'Phone number in E.164 format.', examples: ['+919812345678'] });

export const CALLABLE_FORMATS =
  'Indian mobile number: `+91XXXXXXXXXX`, `91XXXXXXXXXX`, or ten digits starting with 6 to 9. Spaces, hyphens, dots and brackets are ignored. The setting NUMBER_PLAN of the server can allow other countries. Emergency and short numbers are always rejected.';

export const CallableNumberSchema = Type.String({
  description: CALLABLE_FORMATS,
  examples: ['+919812345678', '98123 45678'],
});

/** @throws TandemError INVALID_NUMBER naming the field */
export function requireE164(field: string, input: unknown): string {
  const e164 = normaliseE164(input);
  if (e164 !== null) return e164;
  const message = 'must be a phone number in E.164 format, such as +912240000001';
  throw new TandemError('INVALID_NUMBER', `${field} ${message}.`, { details: [{ path: field, message }] });
}
