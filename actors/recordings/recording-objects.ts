import { Readable } from 'node:stream';
import { TandemError } from '../../machines/errors.ts';
import { withWavLengths } from '../../media/recording/sealed-wav.ts';
import { SealedFileError, type SealingKeys } from '../../runtime/sealed-file/format.ts';
import { openSealedFile, type SealedReader } from '../../runtime/sealed-file/reader.ts';
import { isSealedKey, type ObjectStore } from '../../storage/objects.ts';
import type { PlayableObject } from './recording-library.ts';
import { sealedName } from './recording-names.ts';

/** Opens objects for players and decrypts sealed ones. */
export interface PlayableObjects {
  /** `sizeBytes` is the plaintext's size. Null if the object does not exist. @throws TandemError */
  open(key: string): Promise<PlayableObject | null>;
}

export function createPlayableObjects(objects: Pick<ObjectStore, 'stat' | 'read'>, keys: SealingKeys): PlayableObjects {
  return {
    async open(key) {
      const stored = await objects.stat(key);
      if (stored === null) return null;
      if (!isSealedKey(key)) return { ...stored, read: (range) => objects.read({ key, ...range }) };
      const name = sealedName(key);
      const source = {
        sizeBytes: stored.sizeBytes,
        read: (range: { start: number; end: number }) => objects.read({ key, ...range }),
      };
      const sealed = await openSealedFile(source, (header) => keys.open(header, name)).catch(rethrow);
      const reader = name.endsWith('.wav') ? withWavLengths(sealed) : sealed;
      return { ...stored, sizeBytes: reader.sizeBytes, read: async (range) => await begun(reader, range) };
    },
  };
}

/** Reads the first chunk, so that a missing object or damage there is an error instead of a broken stream. */
async function begun(reader: SealedReader, range: { start: number; end: number }): Promise<Readable> {
  const chunks = reader.read(range);
  const first = await chunks.next().catch(rethrow);
  const rest = Readable.from(chunks, { objectMode: false });
  if (!first.done) rest.unshift(first.value);
  return rest;
}

function rethrow(error: unknown): never {
  throw asTandemError(error);
}

/** Distinguishes a missing key from a damaged file, because their repair differs. */
export function asTandemError(error: unknown): unknown {
  if (!(error instanceof SealedFileError)) return error;
  if (error.code === 'SEALED_KEY_UNKNOWN') {
    return new TandemError(
      'RECORDING_KEY_MISSING',
      'The recording is encrypted with a key that this server does not have. Add the key to RECORDING_KEY_PREVIOUS and restart the server.',
      { cause: error },
    );
  }
  return new TandemError(
    'RECORDING_DAMAGED',
    'The recording was changed or cut off in storage, so it cannot be played. Restore it from a backup.',
    { cause: error },
  );
}
