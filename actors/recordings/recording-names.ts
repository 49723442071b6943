import { join } from 'node:path';
import { isSealedKey, SEALED_EXTENSION } from '../../storage/objects.ts';
import type { ExportForm } from './export-audio.ts';

/** File of a recording while its call runs. */
export function growingFile(recordingsDir: string, { id, isSealed }: { id: string; isSealed: boolean }): string {
  return join(recordingsDir, `${id}.wav${isSealed ? SEALED_EXTENSION : ''}`);
}

/** Start of the object keys of recordings. */
export const RECORDINGS_PREFIX = 'recordings/';

/** Object key of a recording's original audio. */
export function audioKey(options: { workspaceId: string; id: string; isSealed: boolean }): string {
  return `${RECORDINGS_PREFIX}${options.workspaceId}/${options.id}.wav${options.isSealed ? SEALED_EXTENSION : ''}`;
}

/** Name that a file's encryption is bound to, from its key or path. */
export function sealedName(keyOrPath: string): string {
  const name = keyOrPath.split('/').at(-1)!;
  return isSealedKey(name) ? name.slice(0, -SEALED_EXTENSION.length) : name;
}

/** Object key of another form of a recording: next to it, and sealed like it. */
export function formKey(recordingKey: string, form: ExportForm): string {
  const isSealed = isSealedKey(recordingKey);
  const plainKey = isSealed ? recordingKey.slice(0, -SEALED_EXTENSION.length) : recordingKey;
  const base = plainKey.replace(/\.wav$/, '');
  const ending = form.format === 'peaks' ? 'peaks.json' : `${form.channels}.${EXTENSIONS[form.format]}`;
  return `${base}.${ending}${isSealed ? SEALED_EXTENSION : ''}`;
}

const EXTENSIONS = { wav: 'wav', mp3: 'mp3', opus: 'ogg' };

/** All objects that may exist for a recording. */
export function keysOfRecording(recordingKey: string): string[] {
  return [recordingKey, ...ALL_FORMS.map((form) => formKey(recordingKey, form))];
}

const ALL_FORMS: readonly ExportForm[] = [
  { format: 'peaks' },
  ...(['wav', 'mp3', 'opus'] as const).flatMap((format) => [
    { format, channels: 'mono' } as const,
    { format, channels: 'stereo' } as const,
  ]),
];
