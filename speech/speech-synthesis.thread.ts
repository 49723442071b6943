import { StandingThread } from '../runtime/standing-thread.ts';
import { type SupervisedThread, THREAD_CLOSED, THREAD_LOST, type ThreadError } from '../runtime/supervised-thread.ts';
import { raceAbort } from '../runtime/waiting.ts';
import type { SynthesisSettings } from './engines/available-synthesizers.ts';
import type {
  AvailableVoice,
  SpeakRequest,
  SpeechSynthesis,
  SpokenPart,
  SynthesisEngineStatus,
} from './speech-synthesis.ts';
import type { SynthesisThread, ThreadReport } from './synthesis/protocol.ts';
import { SynthesizerError, type SynthesizerErrorCode } from './synthesizer.ts';

export interface SpeechSynthesisOptions {
  settings: SynthesisSettings;
  logger?: SynthesisLogger;
  /** Replaces `engines/available-synthesizers.ts`, for tests with failing engines. */
  enginesModule?: URL;
}

/** The part of a pino logger that is used here. */
interface SynthesisLogger {
  warn(fields: object, message: string): void;
}

/**
 * Starts the synthesis thread. It is restarted when it dies.
 * @throws SynthesizerError `crashed` if it cannot be started
 */
export async function createSpeechSynthesis(options: SpeechSynthesisOptions): Promise<SpeechSynthesis> {
  const host = new SynthesisHost(options);
  await host.started();
  return host;
}

class SynthesisHost implements SpeechSynthesis {
  readonly #logger: SynthesisLogger | undefined;
  readonly #thread: StandingThread<SynthesisThread>;
  #voices: readonly AvailableVoice[] = [];
  #opened = 0;

  constructor({ settings, enginesModule, logger }: SpeechSynthesisOptions) {
    const module = enginesModule ?? new URL('./engines/available-synthesizers.ts', import.meta.url);
    this.#logger = logger;
    this.#thread = new StandingThread({
      entry: new URL('./synthesis/worker.ts', import.meta.url),
      data: { settings, enginesModule: module.href },
      name: 'the synthesis thread',
      onReady: ({ voices }) => {
        this.#voices = voices;
      },
      onReport: (report) => this.#take(report),
      onLost: (detail) => this.#logger?.warn({ detail }, 'synthesis thread lost'),
      toError,
    });
  }

  get isRunning(): boolean {
    return this.#thread.current !== null;
  }

  async started(): Promise<void> {
    try {
      await this.#thread.get();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  voices(): readonly AvailableVoice[] {
    return this.#voices;
  }

  async *speak(request: SpeakRequest, signal: AbortSignal): AsyncGenerator<SpokenPart, void> {
    signal.throwIfAborted();
    let stream: { thread: SupervisedThread<SynthesisThread>; streamKey: number } | null = null;
    try {
      const thread = await raceAbort(this.#thread.get(), signal);
      stream = { thread, streamKey: this.#opened++ };
      const { streamKey } = stream;
      await raceAbort(thread.call('stream.open', { streamKey, request }), signal);
      for (;;) {
        const part = await raceAbort(thread.call('stream.next', { streamKey }), signal);
        if (part === null) return;
        yield part;
        signal.throwIfAborted();
      }
    } finally {
      // Fails if the stream is over or its thread died, and is then already closed.
      stream?.thread.call('stream.close', { streamKey: stream.streamKey }).catch(() => {});
    }
  }

  async engines(): Promise<readonly SynthesisEngineStatus[]> {
    const thread = await this.#thread.get();
    const { engines, voices } = await thread.call('engines.describe', {});
    this.#voices = voices;
    return engines;
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #take(report: ThreadReport): void {
    if (report.type === 'synthesizer.broken') {
      this.#logger?.warn({ model: report.model, detail: report.detail }, 'synthesizer failed');
    } else this.#logger?.warn({ detail: report.detail }, 'speech cache cannot be written');
  }
}

const CODES: Readonly<Record<SynthesizerErrorCode, true>> = {
  unknown_voice: true,
  too_long: true,
  unsayable: true,
  crashed: true,
  model: true,
  unavailable: true,
};

function toError({ code, message }: ThreadError): SynthesizerError {
  if (code === THREAD_CLOSED) return new SynthesizerError('crashed', 'Speech synthesis is shutting down.');
  if (code === THREAD_LOST) return new SynthesizerError('crashed', `Speech synthesis failed: ${message}.`);
  const isKnown = code !== null && Object.hasOwn(CODES, code);
  return new SynthesizerError(isKnown ? (code as SynthesizerErrorCode) : 'crashed', message);
}
