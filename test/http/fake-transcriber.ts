import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  BeginTranscription,
  PendingTranscription,
  PublicTranscript,
  Transcribed,
  TranscribeRequest,
  Transcriber,
} from '../../actors/stt/transcriber.ts';

/** A transcriber without recognition: records requests and returns what the test sets. */
export class FakeTranscriber implements Transcriber {
  readonly begun: BeginTranscription[] = [];
  readonly requests: (TranscribeRequest & { uploadPath: string })[] = [];
  ended = 0;
  /** Throws to refuse. */
  onBegin: (request: BeginTranscription) => void | Promise<void> = () => undefined;
  onTranscribe: (
    request: TranscribeRequest,
    upload: { uploadPath: string; signal: AbortSignal },
  ) => Transcribed | Promise<Transcribed> = () => ({ transcript: TRANSCRIPT, charge: null });
  readonly downloads: string[] = [];
  /** Throws to refuse. */
  onDownload: (url: string) => void = () => undefined;
  #folder: string | null = null;

  async begin(request: BeginTranscription): Promise<PendingTranscription> {
    await this.onBegin(request);
    this.begun.push(request);
    this.#folder ??= mkdtempSync(join(tmpdir(), 'tandem-uploads-'));
    const uploadPath = join(this.#folder, randomUUID());
    const { signal } = request;
    return {
      uploadPath,
      signal,
      download: async (url) => {
        this.downloads.push(url);
        this.onDownload(url);
        return { fileName: 'call.mp3', mediaType: 'audio/mpeg' };
      },
      transcribe: async (asked) => {
        this.requests.push({ ...asked, uploadPath });
        return await this.onTranscribe(asked, { uploadPath, signal });
      },
      end: async () => {
        this.ended += 1;
        rmSync(uploadPath, { force: true });
      },
    };
  }

  languages() {
    return ['auto', 'en', 'hi', 'ur'].map((code) => ({
      language_id: code,
      name: { auto: 'Automatic detection', en: 'English', hi: 'Hindi', ur: 'Urdu' }[code]!,
      auto: code === 'auto',
      rest: true,
      websocket: code === 'en' || code === 'hi',
    }));
  }

  async models() {
    return ['pocketsphinx/en-us'];
  }

  /** Also removes uploads that are still on disk. */
  [Symbol.dispose](): void {
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true, force: true });
  }
}

export const TRANSCRIPT: PublicTranscript = {
  text: 'go forward ten meters',
  language: 'en',
  language_source: 'detected',
  language_probability: null,
  duration: 1.5,
  snr_db: 21.3,
  warning_codes: [],
  words: [{ word: 'go', start: 0.1, end: 0.3, confidence: 0.9 }],
  segments: [{ id: 0, chunk_idx: 0, start: 0.1, end: 1.4, text: 'go forward ten meters', language: 'en' }],
  speakers: [],
  llm_applied: false,
  llm_reason: null,
  model: 'pocketsphinx/en-us',
  processing_time_ms: 12,
  cost_usd: 0,
};
