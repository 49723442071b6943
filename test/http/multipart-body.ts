export interface FormPart {
  name: string;
  value: string | Buffer;
  /** Marks the part as a file. */
  filename?: string;
  type?: string;
}

const BOUNDARY = 'tandem-test-boundary';

export function formOf(parts: readonly FormPart[]): { body: Buffer; headers: { 'content-type': string } } {
  const chunks = parts.flatMap(({ name, value, filename, type }) => [
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name.replaceAll('"', '%22')}"`,
    filename === undefined ? '' : `; filename="${filename}"`,
    type === undefined ? '\r\n\r\n' : `\r\ncontent-type: ${type}\r\n\r\n`,
    value,
    '\r\n',
  ]);
  const body = Buffer.concat([...chunks, `--${BOUNDARY}--\r\n`].map((chunk) => Buffer.from(chunk as string)));
  return { body, headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` } };
}

/** The fields of a form as parts; lists become repeated parts. */
export function partsOf(fields: object): FormPart[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (name === 'file' && typeof value === 'string') return [{ ...AUDIO, value: Buffer.from(value) }];
    if (name === 'files' && Array.isArray(value)) return value.map((one) => ({ ...AUDIO, name, value: textOf(one) }));
    return [value].flat().map((one) => field(name, textOf(one)));
  });
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

export const AUDIO: FormPart = { name: 'file', value: Buffer.from('RIFF'), filename: 'call.wav', type: 'audio/wav' };

export function field(name: string, value: string): FormPart {
  return { name, value };
}
