import type { MessagePort } from 'node:worker_threads';
import { TandemError } from '../../machines/errors.ts';
import type { RecognitionEvent } from '../../machines/utterances.ts';
import { type AvailableEngines, problemOf } from '../engines/available-engines.ts';
import type { EngineName } from '../recognizer.ts';
import type { EngineStatus, RecognitionLanguage, RecognitionSettings } from '../speech-recognition.ts';
import { BatchStream } from './batch-stream.ts';
import { LiveLoad, type LiveLoadReading } from './live-load.ts';
import { LiveStream } from './live-stream.ts';
import type { EnginesDescribed, StreamModel } from './protocol.ts';
import { RecognizerPool } from './recognizer-pool.ts';
import { type Candidate, type Capability, findRoute, modelNameOf, type PreferredEngine } from './router.ts';
import { SpeakerLabels } from './speaker-labels.ts';
import type { UtteranceStream } from './utterance-stream.ts';

export interface RecognitionDeskOptions {
  available: AvailableEngines;
  preferred: PreferredEngine;
  /** Limit of local recognizers. */
  processes: number;
  onEvent: (streamKey: number, event: RecognitionEvent) => void;
  onBroken?: (instance: { model: string; detail: string }) => void;
  /** Called when the live load changes. */
  onLoad?: (load: LiveLoadReading) => void;
  /** Default `performance.now`. */
  nowMs?: () => number;
}

export interface OpenStreamOptions {
  streamKey: number;
  mode: 'live' | 'batch';
  /** Opens a live stream even if the recognizers are busy. Default false. */
  isPromised?: boolean;
  settings: RecognitionSettings;
  utterances: MessagePort;
}

/** State of the speech thread: streams, and the recognizers they share. */
export class RecognitionDesk {
  readonly #options: RecognitionDeskOptions;
  readonly #pool: RecognizerPool;
  readonly #load: LiveLoad;
  readonly #streams = new Map<number, { stream: UtteranceStream; isLive: boolean }>();

  constructor(options: RecognitionDeskOptions) {
    this.#options = options;
    const { processes, onBroken } = options;
    this.#pool = new RecognizerPool({ processes, ...(onBroken && { onBroken }) });
    this.#load = new LiveLoad({
      processes,
      realTimeFactorOf: (engine) => this.#pool.liveRealTimeFactorOf(engine),
      nowMs: options.nowMs ?? (() => performance.now()),
    });
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** @throws TandemError `unsupported_language`, `STT_OVERLOADED` */
  async open(options: OpenStreamOptions): Promise<StreamModel> {
    const isLive = options.mode === 'live';
    try {
      const capabilities = await this.#capabilities();
      const candidates = this.#candidatesFor(options.settings, isLive, capabilities);
      if (isLive && !options.isPromised && !this.#load.hasRoomFor(engineOf(candidates))) throw overloaded();
      return this.#open(options, isLive, candidates);
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
      onEvent: (event) => {
        if (isLive) this.#weigh(streamKey, event);
        this.#options.onEvent(streamKey, event);
      },
      onClosed: () => {
        this.#streams.delete(streamKey);
        if (!isLive) return;
        this.#load.close(streamKey);
        this.#reportLoad();
      },
    });
    this.#streams.set(streamKey, { stream, isLive });
    if (isLive) this.#load.open(streamKey, engineOf(candidates));
    this.#reportLoad();
    this.#warm(candidates[0]);
    return streamModel(candidates[0]);
  }

  /** @throws TandemError `unsupported_language`, without any change */
  async configure(streamKey: number, change: Partial<RecognitionSettings>): Promise<StreamModel> {
    const capabilities = await this.#capabilities();
    const open = this.#streams.get(streamKey);
    if (open === undefined) throw new TandemError('INTERNAL', 'The stream is closed.');
    const settings = { ...open.stream.settings, ...change };
    const candidates = this.#candidatesFor(settings, open.isLive, capabilities);
    open.stream.configure(settings, candidates);
    if (open.isLive) this.#load.open(streamKey, engineOf(candidates));
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

  #weigh(streamKey: number, event: RecognitionEvent): void {
    if (event.type === 'recognition.lagging') this.#load.setBehind(streamKey, event.isShedding);
    else if ('summary' in event) this.#load.speak(streamKey, event.summary.endMs - event.summary.startMs);
    else return;
    this.#reportLoad();
  }

  #reportLoad(): void {
    this.#options.onLoad?.(this.#load.read());
  }

  /** Loads recognizers ahead of speech: one per open stream, up to the limit. */
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

  /** Queried each time, which is cheap, to find newly installed models. */
  async #capabilities(): Promise<Capability[]> {
    const described = await Promise.all(
      this.#options.available.engines.map(async (engine) =>
        (await engine.describe()).map((description) => ({ engine, description })),
      ),
    );
    return described.flat();
  }
}

function engineOf([best]: readonly [Candidate, ...Candidate[]]): EngineName {
  return best.engine.name;
}

function overloaded(): TandemError {
  return new TandemError('STT_OVERLOADED', 'The recognizers are fully loaded by live transcription. Try again later.');
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
