import type { MessagePort } from 'node:worker_threads';
import type { AudioFormat, ListeningEvent } from '../machines/utterances.ts';

/**
 * Ears: streams and files go in, utterances come out on a MessagePort (`UtteranceMessage`), found by a voice detector
 * in worker threads. Implemented in `listening-plane.workers.ts`.
 */
export interface ListeningPlane {
  /** @throws TandemError `SHUTTING_DOWN`, `INTERNAL` when no worker can be had */
  open(options: ListenOptions): Promise<ListeningSession>;
  /**
   * Listens to a file of samples, faster than real time, and never further ahead of the recogniser than `SamplesTaken`
   * allows. Resolves when the last utterance is posted, followed by `stream.end`.
   * @throws TandemError `INTERNAL` when the worker dies or the file cannot be read; the signal's reason when aborted
   */
  listenToFile(options: ListenToFileOptions): Promise<FileHeard>;
  capacity(): { sessions: number; workers: number };
  dump(): Promise<unknown>;
  close(): Promise<void>;
}

/** `light`: noise suppression at half strength; `adaptive`: as strong as the measured noise asks for. */
export type AudioEnhancement = 'off' | 'light' | 'adaptive';

export interface ListeningSettings {
  format: AudioFormat;
  /** Silence after which an utterance is over. Counts as 30 000 at most: no utterance is longer. */
  utteranceEndMs: number;
  enhancement: AudioEnhancement;
}

export interface ListenOptions extends ListeningSettings {
  sessionId: string;
  /** Where utterances are posted; handed over to the worker. */
  utterances: MessagePort;
  /**
   * Audio that another thread brings, such as the tap of a call: it posts the memory of a `SampleRing` once, and writes
   * samples to it. The session's format must be `TAP_FORMAT`, but the ring tells the sample rate. `finish` hears what was
   * written before it was called.
   */
  inlet?: MessagePort;
  onEvent: (event: ListeningEvent) => void;
  /** Told again and again how much of what was written has been heard, in milliseconds since the session began. */
  onHeard?: (heardMs: number) => void;
  /** Aborting closes the session at once; nothing more is posted. */
  signal: AbortSignal;
}

export interface ListeningSession {
  /** Takes the bytes over: the caller must not use the buffer again. Whole samples or parts of them, in order. */
  write(bytes: Uint8Array<ArrayBuffer>): void;
  /** Applies to what is written from now on. */
  configure(change: Partial<ListeningSettings>): void;
  /** Ends the open utterance, if any, in what was written until now. */
  endUtterance(): void;
  /** Ends the utterance that is open and posts `stream.end`; resolves when all that was written has been heard. */
  finish(): Promise<StreamHeard>;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface StreamHeard {
  durationMs: number;
  speechMs: number;
  /** Of all speech over all background; null when there was too little. */
  snrDb: number | null;
}

export interface ListenToFileOptions {
  /** Samples on disk: raw, or from an offset of a WAV file. */
  source: { filePath: string; offset: number; bytes: number; format: AudioFormat };
  /** `separate`: each channel is heard on its own and named by its utterances; `mixed`: their mean. */
  channels: 'mixed' | 'separate';
  enhancement: AudioEnhancement;
  /** Utterances are joined until they are this long, and cut at the longest pause before they are twice as long. */
  minSplitMs: number;
  utterances: MessagePort;
  signal: AbortSignal;
}

export interface FileHeard extends StreamHeard {
  utterances: number;
  /** The levels of the file never rose above silence. */
  isSilent: boolean;
}
