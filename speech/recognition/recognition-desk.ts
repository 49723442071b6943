import type { MessagePort } from 'node:worker_threads';
import { TandemError } from '../../machines/errors.ts';
import type { RecognitionEvent } from '../../machines/utterances.ts';
import { type AvailableEngines, problemOf } from '../engines/available-engines.ts';
import type { EngineName } from '../recognizer.ts';
import type { EngineStatus, RecognitionLanguage, RecognitionSettings } from '../speech-recognition.ts';
import type { EnginesDescribed, StreamModel } from './protocol.ts';
import { RecognizerPool } from './recognizer-pool.ts';
import { type Candidate, type Capability, findRoute, modelNameOf, type PreferredEngine } from './router.ts';
import { SpeakerLabels } from './speaker-labels.ts';
import { BatchStream } from './stream-batch.ts';
import { LiveStream } from './stream-live.ts';
import type { UtteranceStream } from './utterance-stream.ts';

export interface RecognitionDeskOptions {
  available: AvailableEngines;
  preferred: PreferredEngine;
  /** Recognizers of local engines at most. */
  processes: number;
  onEvent: (streamKey: number, event: RecognitionEvent) => void;
  onBroken?: (instance: { model: string; detail: string }) => void;
}

export interface OpenStreamOptions {
  streamKey: number;
  mode: 'live' | 'batch';
  settings: RecognitionSettings;
  utterances: MessagePort;
}

/** What the speech thread does, without the thread: streams, and the recognizers they share. */
export class RecognitionDesk {
  readonly #options: RecognitionDeskOptions;
  readonly #pool: RecognizerPool;
  readonly #streams = new Map<number, { stream: UtteranceStream; isLive: boolean }>();

  constructor(options: RecognitionDeskOptions) {
    this.#options = options;
    const { processes, onBroken } = options;
    this.#pool = new RecognizerPool({ processes, ...(onBroken && { onBroken }) });
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** @throws TandemError `unsupported_language` */
  async open(options: OpenStreamOptions): Promise<StreamModel> {
    const isLive = options.mode === 'live';
    try {
      const capabilities = await this.#capabilities();
      return this.#open(options, isLive, this.#candidatesFor(options.settings, isLive, capabilities));
    } catch (error) {
      options.utterances.close();
      throw error;
    }
  }

  #open(
    { streamKey, mode, settings, utterances }: OpenStreamOptions,
    isLive: boolean,
    candidates: readonly [Candidate, ...Candidate[]],
  ): StreamModel {
    const Stream = isLive ? LiveStream : BatchStream;
    const stream = new Stream({
      streamKey,
      port: utterances,
      pool: this.#pool,
      settings,
      candidates,
      speakers: new SpeakerLabels({
        mode,
        embedder: this.#options.available.embedder,
        onBroken: (detail) => this.#options.onBroken?.({ model: 'speaker model', detail }),
      }),
      onEvent: (event) => this.#options.onEvent(streamKey, event),
      onClosed: () => this.#streams.delete(streamKey),
    });
    this.#streams.set(streamKey, { stream, isLive });
    this.#warm(candidates[0]);
    return streamModel(candidates[0]);
  }

  /** @throws TandemError `unsupported_language`, and nothing changes */
  async configure(streamKey: number, change: Partial<RecognitionSettings>): Promise<StreamModel> {
    const capabilities = await this.#capabilities();
    const open = this.#streams.get(streamKey);
    if (open === undefined) throw new TandemError('INTERNAL', 'The stream is closed.');
    const settings = { ...open.stream.settings, ...change };
    const candidates = this.#candidatesFor(settings, open.isLive, capabilities);
    open.stream.configure(settings, candidates);
    this.#warm(candidates[0]);
    return streamModel(candidates[0]);
  }

  close(streamKey: number): void {
    this.#streams.get(streamKey)?.stream.close();
  }

  async describe(): Promise<EnginesDescribed> {
    const capabilities = await this.#capabilities();
    const { engines, missing } = this.#options.available;
    const installed = await Promise.all(
      engines.map(async (engine): Promise<EngineStatus> => {
        const { name } = engine;
        const models = capabilities.filter((it) => it.engine === engine).map(({ description }) => description.model);
        const status = this.#pool.statusOf(name);
        return { engine: name, models, ...status, problem: status.problem ?? (await problemOf(engine)) };
      }),
    );
    const absent = missing.map(
      ({ engine, problem }): EngineStatus => ({
        engine,
        models: [],
        loaded: 0,
        busy: 0,
        realTimeFactor: null,
        problem,
      }),
    );
    return { languages: languagesOf(capabilities), engines: [...installed, ...absent] };
  }

  async drain(): Promise<void> {
    for (const { stream } of this.#streams.values()) stream.close();
    await this.#pool.close();
  }

  /** Somebody is about to speak: one recognizer for each stream that is open, as far as there is room. */
  #warm(candidate: Candidate): void {
    this.#pool.warm(candidate, this.#streams.size);
  }

  #candidatesFor(
    { languages }: RecognitionSettings,
    isLive: boolean,
    capabilities: readonly Capability[],
  ): readonly [Candidate, ...Candidate[]] {
    const { preferred } = this.#options;
    const route = findRoute({ languages, preferred, isLive, capabilities });
    if (route.type === 'unsupported') throw new TandemError('unsupported_language', route.message);
    return route.candidates;
  }

  /** Asked anew each time, which is cheap, so that a model that was installed meanwhile is found. */
  async #capabilities(): Promise<Capability[]> {
    const described = await Promise.all(
      this.#options.available.engines.map(async (engine) =>
        (await engine.describe()).map((description) => ({ engine, description })),
      ),
    );
    return described.flat();
  }
}

function streamModel(candidate: Candidate): StreamModel {
  return { model: modelNameOf(candidate), boostsKeywords: candidate.description.boostsKeywords };
}

function languagesOf(capabilities: readonly Capability[]): RecognitionLanguage[] {
  const engines = new Map<string, Set<EngineName>>();
  for (const { description } of capabilities) {
    for (const code of description.languages) {
      engines.set(code, (engines.get(code) ?? new Set()).add(description.engine));
    }
  }
  return [...engines]
    .map(([code, names]) => ({ code, engines: [...names] }))
    .sort((a, b) => (a.code < b.code ? -1 : 1));
}
