import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { compandedWavHeader } from '../../media/companded-wav.ts';
import { wavHeader } from '../../media/wav.ts';
import { Gate } from '../../runtime/gate.ts';
import type { SpeechEncoding, SpeechFormat } from '../../speech/speech-synthesis.ts';
import type { ObjectStore } from '../../storage/objects.ts';

export interface KeptAudioOptions {
  key: string;
  format: SpeechFormat;
  objects: Pick<ObjectStore, 'putFile'>;
  /** Folder of the growing file. */
  tempDir: string;
  /** Longer audio is not kept. Default 256 MiB: 45 minutes of the largest format. */
  maxBytes?: number;
}

const MAX_BYTES = 256 * 1024 * 1024;

export function fileExtensionOf(encoding: SpeechEncoding): 'wav' | 'mp3' | 'ogg' {
  if (encoding === 'MP3') return 'mp3';
  return encoding === 'OGG_OPUS' ? 'ogg' : 'wav';
}

/** Writes a text's audio to a playable file and moves it into the object store. Runs one operation at a time. */
export class KeptAudio {
  readonly #options: KeptAudioOptions;
  readonly #path: string;
  #file: FileHandle | null = null;
  #bytes = 0;
  #state: 'growing' | 'stored' | 'given up' = 'growing';
  readonly #turn = new Gate({ inAll: 1 });

  constructor(options: KeptAudioOptions) {
    this.#options = options;
    this.#path = join(options.tempDir, options.key.split('/').at(-1)!);
  }

  /** @throws the file system's error; RangeError if the audio is too long. Discards the audio then. */
  append(audio: Uint8Array): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#state !== 'growing' || audio.byteLength === 0) return;
      if (this.#bytes + audio.byteLength > (this.#options.maxBytes ?? MAX_BYTES)) throw new RangeError('too long');
      this.#file ??= await this.#begun();
      await this.#file.writeFile(audio);
      this.#bytes += audio.byteLength;
    });
  }

  /** Moves the audio into the store, once. False if nothing was kept. @throws the file system's error */
  store(): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.#state !== 'growing' || this.#file === null) return this.#state === 'stored';
      const { key, objects, format } = this.#options;
      await finishFile(this.#file, { header: headerOf(format, this.#bytes), bytes: this.#bytes });
      await this.#close();
      await objects.putFile({ key, sourcePath: this.#path });
      this.#state = 'stored';
      return true;
    });
  }

  /** Removes the file, but not the stored object. Idempotent. */
  discard(): Promise<void> {
    return this.#inTurn(() => this.#giveUp());
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    return await this.#turn.run(async () => {
      try {
        return await work();
      } catch (error) {
        await this.#giveUp();
        throw error;
      }
    });
  }

  async #giveUp(): Promise<void> {
    if (this.#state === 'stored') return;
    this.#state = 'given up';
    await this.#close();
    await rm(this.#path, { force: true });
  }

  async #begun(): Promise<FileHandle> {
    const file = await open(this.#path, 'wx', 0o600);
    this.#file = file;
    const header = headerOf(this.#options.format, 0);
    if (header !== null) await file.writeFile(header);
    return file;
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }
}

/** Completes the file with its header, whose lengths are known only now. */
async function finishFile(file: FileHandle, { header, bytes }: { header: Buffer | null; bytes: number }) {
  if (header === null) return;
  if (bytes % 2 === 1) await file.writeFile(Buffer.alloc(1));
  await file.write(header, 0, header.byteLength, 0);
}

/** Null for formats that need no header. */
function headerOf({ encoding, sampleRateHz }: SpeechFormat, bytes: number): Buffer | null {
  if (encoding === 'LINEAR16') return wavHeader({ channels: 1, sampleRateHz }, bytes);
  if (encoding === 'MULAW' || encoding === 'ALAW') return compandedWavHeader({ law: encoding, sampleRateHz }, bytes);
  return null;
}
