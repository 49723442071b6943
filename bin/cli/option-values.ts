import { isObject } from '../../runtime/is-object.ts';
import { UsageError } from './command.ts';

/** Not negative. @throws UsageError */
export function numberOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,6}(\.\d{1,6})?$/.test(text)) throw new UsageError(`${option} takes a number`);
  return Number(text);
}

/** @throws UsageError */
export function switchOf(option: string, text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text !== 'on' && text !== 'off') throw new UsageError(`${option} takes on or off`);
  return text === 'on';
}

/** Items separated by commas. */
export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** @throws UsageError that contains the example */
export function objectOf(
  option: string,
  { text, example }: { text: string | undefined; example: string },
): object | undefined {
  if (text === undefined) return undefined;
  const value = jsonOf(text);
  if (isObject(value)) return value;
  throw new UsageError(`${option} takes a JSON object such as '${example}'`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** For irreversible actions. @throws UsageError */
export function requireConfirmation(yes: true | undefined): void {
  if (yes !== true) throw new UsageError('this cannot be undone: add --yes to confirm');
}
