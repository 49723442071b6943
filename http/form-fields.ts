import { type InvalidField, validationFailed } from './validation.ts';

export type FormFields = Readonly<Record<string, string | string[]>>;

/** The value is whether it may be repeated. */
export type FieldKinds = Readonly<Record<string, 'once' | 'repeated'>>;

/**
 * Converts a query or JSON object to form fields, so that one reader handles all. Null counts as absent.
 * @throws TandemError `VALIDATION_FAILED` with every invalid field
 */
export function toFormFields(values: object, kinds: FieldKinds): FormFields {
  const invalid: InvalidField[] = [];
  const fields: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(values)) {
    const path = name.slice(0, 128);
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    const isList = Array.isArray(value);
    if (kind === undefined) invalid.push({ path, message: 'is not a known field' });
    else if (value === null) continue;
    else if (isList && kind === 'once') invalid.push({ path, message: 'must be sent only once' });
    else if ([value].flat().some((item) => item === null || typeof item === 'object')) {
      invalid.push({
        path,
        message: isList ? 'must be an array of strings' : 'must be a string, a number or a boolean',
      });
    } else fields[name] = isList ? value.map(String) : String(value);
  }
  if (invalid.length > 0) throw validationFailed(invalid.slice(0, 20));
  return fields;
}

/** Reads form fields and collects errors in `invalid`. */
export interface Form {
  invalid: InvalidField[];
  refuse(path: string, message: string): void;
  text(name: string, maxLength: number): string | null;
  boolean(name: string): boolean;
  integer(name: string, bounds: { min?: number; max: number }): number | null;
  number(name: string, bounds: { min: number; max: number }): number | null;
  choice(name: string, choices: readonly string[]): string | null;
  /** Reads a comma-separated list, a JSON array of strings, or a repeated field. */
  list(name: string): string[];
}

/** Treats an empty field as absent, because HTML forms send those. */
export function readForm(fields: FormFields): Form {
  const invalid: InvalidField[] = [];
  const refuse = (path: string, message: string) => {
    if (!invalid.some((one) => one.path === path)) invalid.push({ path, message });
  };
  const given = (name: string): string | null => {
    const value = fields[name];
    const text = typeof value === 'string' ? value.trim() : '';
    return text === '' ? null : text;
  };
  function number(name: string, { min, max, pattern }: { min?: number; max: number; pattern: RegExp }): number | null {
    const text = given(name);
    if (text === null) return null;
    const value = pattern.test(text) ? Number(text) : Number.NaN;
    const kind = pattern === INTEGER ? 'an integer' : 'a number';
    if (Number.isNaN(value)) refuse(name, `must be ${kind}`);
    else if (min !== undefined && value < min) refuse(name, `must be at least ${min}`);
    else if (value > max) refuse(name, `must be at most ${max}`);
    return value;
  }
  return {
    invalid,
    refuse,
    text(name, maxLength) {
      const text = given(name);
      if (text !== null && text.length > maxLength) refuse(name, `must be at most ${maxLength} characters`);
      return text;
    },
    boolean(name) {
      const text = given(name)?.toLowerCase() ?? 'false';
      if (!['true', 'false', '1', '0'].includes(text)) refuse(name, 'must be true or false');
      return text === 'true' || text === '1';
    },
    integer: (name, bounds) => number(name, { ...bounds, pattern: INTEGER }),
    number: (name, bounds) => number(name, { ...bounds, pattern: DECIMAL }),
    choice(name, choices) {
      const text = given(name);
      if (text !== null && !choices.includes(text)) refuse(name, `must be one of ${choices.join(', ')}`);
      return text;
    },
    list(name) {
      const items = [fields[name] ?? []].flat().flatMap((text) => listIn(text) ?? []);
      if ([fields[name] ?? []].flat().some((text) => listIn(text) === null)) {
        refuse(name, 'must be a comma-separated list or a JSON array of strings');
      }
      return items.map((item) => item.trim()).filter((item) => item !== '');
    },
  };
}

const INTEGER = /^-?\d{1,9}$/;
/** As JavaScript and Python write any number of a double, such as 0.30000000000000004 and 1e-7. */
const DECIMAL = /^-?\d{1,9}(\.\d{1,20})?(e-\d{1,3})?$/i;

function listIn(text: string): string[] | null {
  if (!text.trimStart().startsWith('[')) return text.split(',');
  try {
    const items = JSON.parse(text) as unknown;
    return Array.isArray(items) && items.every((item) => typeof item === 'string') ? items : null;
  } catch {
    return null;
  }
}
