/** A shell command (POSIX) equivalent to a form of the playground. */

export interface HttpCommand {
  method: 'GET' | 'POST';
  path: string;
  json?: object;
  /** Form fields. A value `{ file }` is read from that path. */
  form?: readonly (readonly [name: string, value: string | { file: string }])[];
  /** The `Accept` header. */
  accept?: string;
  /** File that receives the response. */
  output?: string;
  /** Prints each part of the response as it arrives. */
  isStreamed?: boolean;
}

export const KEY_VARIABLE = 'TANDEM_API_KEY';

/** Formats `curl` with one option per line. The shell inserts the key from the variable. */
export function curlOf({ method, path, json, form, accept, output, isStreamed }: HttpCommand, origin: string): string {
  const options = [
    `-X ${method} ${quoted(origin + path)}`,
    `-H "Authorization: Bearer $${KEY_VARIABLE}"`,
    ...(accept === undefined ? [] : [`-H ${quoted(`Accept: ${accept}`)}`]),
    ...(json === undefined ? [] : ["-H 'Content-Type: application/json'", `--data-raw ${quoted(pretty(json))}`]),
    ...(form ?? []).map(fieldOf),
    ...(output === undefined ? [] : [`--output ${quoted(output)}`]),
  ];
  return `curl ${isStreamed ? '-sN' : '-sS'} ${options.join(' \\\n  ')}`;
}

/**
 * In `--form` a value that begins with `@` or `<` names a file, and `;` begins an attribute. `--form-string` is
 * literal.
 */
function fieldOf([name, value]: readonly [string, string | { file: string }]): string {
  return typeof value === 'string'
    ? `--form-string ${quoted(`${name}=${value}`)}`
    : `-F ${quoted(`${name}=@"${value.file.replaceAll(/["\\]/g, '\\$&')}"`)}`;
}

/** Quotes one shell word. Inside single quotes every character but the quote is literal. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function pretty(json: object): string {
  return JSON.stringify(json, null, 2);
}
