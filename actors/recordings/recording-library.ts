import type { Readable } from 'node:stream';
import type { ObjectStat } from '../../storage/objects.ts';

/** Stored recordings for players: decrypted, in several formats, with peaks. */
export interface RecordingLibrary {
  /**
   * Opens an object; `sizeBytes` is the plaintext's size. Null if it does not exist.
   * @throws TandemError `RECORDING_KEY_MISSING`, `RECORDING_DAMAGED`
   */
  open(key: string): Promise<PlayableObject | null>;
  /**
   * Returns the recording in a form. The first use encodes it; the copy is kept. Concurrent requests share an encoding.
   * @throws TandemError `RECORDING_ENCODING` during encoding, or if too many wait; `RECORDING_UNAVAILABLE` if the
   * object is gone or not uploaded yet; `RECORDING_KEY_MISSING`, `RECORDING_DAMAGED`
   */
  inForm(recording: StoredRecording, form: AudioForm): Promise<{ key: string; sizeBytes: number }>;
  /** Returns the object key of the peaks. Null: they are being computed. */
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
  /** Reads bytes `start` to `end`, both included. The stream fails if the file is damaged. @throws TandemError */
  read(range: { start: number; end: number }): Promise<Readable>;
}
