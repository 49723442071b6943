import type { MessagePort } from 'node:worker_threads';
import type { AudioFormat, ListeningEvent } from '../machines/utterances.ts';

/**
 * Voice detection in worker threads: takes streams and files, and posts utterances on a MessagePort
 * (`UtteranceMessage`). Implemented in `listening-plane.workers.ts`.
 */
export interface ListeningPlane {
  /** Starts the threads now, so that the next session need not wait for them. Idempotent. */
  warmUp(): void;
  /** @throws TandemError `SHUTTING_DOWN`, `INTERNAL` if no worker is available */
  open(options: ListenOptions): Promise<ListeningSession>;
  /**
   * Analyses a file faster than real time, at the pace of the recogniser's `SamplesTaken`. Resolves when the last
   * utterance and `stream.end` are posted.
   * @throws TandemError `INTERNAL` if the worker dies or the file cannot be read; the signal's reason when aborted
   */
  listenToFile(options: ListenToFileOptions): Promise<FileAnalysis>;
  capacity(): { sessions: number; workers: number };
  dump(): Promise<unknown>;
  close(): Promise<void>;
}

/** `light`: noise suppression at half strength; `adaptive`: strength by measured noise. */
export type AudioEnhancement = 'off' | 'light' | 'adaptive';

export interface ListeningSettings {
  format: AudioFormat;
  /** Silence that ends an utterance; limited to 30 000, the longest utterance. */
  utteranceEndMs: number;
  enhancement: AudioEnhancement;
}

export interface ListenOptions extends ListeningSettings {
  sessionId: string;
  /** Receives the utterances. Transferred to the worker. */
  utterances: MessagePort;
  /**
   * Audio from another thread, such as the tap of a call. It posts the memory of a `SampleRing` once and writes samples
   * to it. The format must be `TAP_FORMAT`, but the ring sets the rate. `finish` includes everything written before it.
   */
  inlet?: MessagePort;
  onEvent: (event: ListeningEvent) => void;
  /** Repeatedly receives the duration of analysed audio, in milliseconds since the session began. */
  onAnalysed?: (analysedMs: number) => void;
  /** Aborting closes the session at once, without further events. */
  signal: AbortSignal;
}

export interface ListeningSession {
  /** Transfers the bytes: do not use the buffer again. Chunks may split samples but must be in order. */
  write(bytes: Uint8Array<ArrayBuffer>): void;
  /** Applies to later writes. */
  configure(change: Partial<ListeningSettings>): void;
  endUtterance(): void;
  /** Ends the open utterance and posts `stream.end`. Resolves when all written audio is analysed. */
  finish(): Promise<StreamAnalysis>;
  /** Idempotent. */
  close(): Promise<void>;
}

/** Totals of an analysed stream. */
export interface StreamAnalysis {
  durationMs: number;
  speechMs: number;
  /** All speech over all background; null if either is too short. */
  snrDb: number | null;
}

export interface ListenToFileOptions {
  /** Samples on disk: raw, or from an offset of a WAV file. */
  source: { filePath: string; offset: number; bytes: number; format: AudioFormat };
  /** `separate`: analyses each channel, and utterances name theirs; `mixed`: analyses their mean. */
  channels: 'mixed' | 'separate';
  enhancement: AudioEnhancement;
  /** Joins utterances up to this length. Splits at the longest pause before twice this length. */
  minSplitMs: number;
  utterances: MessagePort;
  signal: AbortSignal;
}

export interface FileAnalysis extends StreamAnalysis {
  utterances: number;
  /** The level of the file never exceeded silence. */
  isSilent: boolean;
}
