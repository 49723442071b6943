import type { Readable } from 'node:stream';
import type { ObjectStat } from '../../storage/objects.ts';

/** Stored recordings as players want them: decrypted, in several formats, with peaks. */
export interface RecordingLibrary {
  /**
   * An object as players see it; `sizeBytes` is that of the plaintext. Null if it does not exist.
   * @throws TandemError `RECORDING_KEY_MISSING`, `RECORDING_DAMAGED`
   */
  open(key: string): Promise<PlayableObject | null>;
  /**
   * The recording in a form, which is encoded on first use and kept beside it. Concurrent requests share one encoding.
   * @throws TandemError `RECORDING_ENCODING` while it is being encoded, or when too many wait; `RECORDING_UNAVAILABLE`
   * when the object is gone; `RECORDING_KEY_MISSING`, `RECORDING_DAMAGED`
   */
  inForm(recording: StoredRecording, form: AudioForm): Promise<{ key: string; sizeBytes: number }>;
  /** Object key of the peaks. Null while they do not exist; then they are being computed. */
  peaksOf(recording: StoredRecording): Promise<string | null>;
}

export interface AudioForm {
  format: 'wav' | 'mp3' | 'opus';
  channels: 'mono' | 'stereo';
}

export interface StoredRecording {
  id: string;
  objectKey: string;
}

export interface PlayableObject extends ObjectStat {
  /** Bytes `start` to `end`, both included. The stream fails if the file is damaged. @throws TandemError */
  read(range: { start: number; end: number }): Promise<Readable>;
}
