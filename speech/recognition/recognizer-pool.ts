import { LeasePool, type LeaseRequest, type Lease as PoolLease, type ResourceKind } from '../../runtime/lease-pool.ts';
import type { EngineName, Recognizer } from '../recognizer.ts';
import { RecognizerError } from '../recognizer.ts';
import { type ClaimOptions, inOrder, leaseToRecall } from './claims.ts';
import { isLocal } from './live-load.ts';
import { ModelTrust } from './model-trust.ts';
import { type Capability, modelNameOf } from './router.ts';
import { answeredWithin, WorkMeter } from './work-meter.ts';

/** A recognizer for one utterance. It may share its process with others. */
export interface Lease {
  readonly recognizer: Recognizer;
  /** A more urgent request waits: release the recognizer, unless this utterance is due by now. */
  readonly isRecalled: boolean;
  /** Awaits and measures a recognizer's answer. @throws RecognizerError `crashed` on timeout */
  work<Answer>(answer: Promise<Answer>): Promise<Answer>;
  /** Ends the lease; call it once. `broken` describes a broken instance, which is closed and replaced on demand. */
  release(outcome: { broken: string | null; audioMs: number; hasText?: boolean }): void;
}

export interface RecognizerPoolOptions {
  /** Limit of local instances, over all models. */
  processes: number;
  /** Idle time before an instance is unloaded. Default 5 minutes. */
  idleMs?: number;
  /** Timeout of one answer, after which a recognizer counts as dead. Default 2 minutes. */
  answerWithinMs?: number;
  onBroken?: (instance: { model: string; detail: string }) => void;
}

const OUT_OF_SERVICE =
  'is out of service for 10 minutes: its process crashed on all that was said. Run tandem models check, and fetch it again';
const DEFAULT_ANSWER_WITHIN_MS = 120_000;

/** An instance is busy while any of its leases awaits an answer. */
interface Busy {
  answers: number;
  sinceMs: number;
}

interface Request extends ClaimOptions, LeaseRequest<Recognizer> {
  isAlone: boolean;
  onRecall: () => void;
}

/**
 * Leases recognizers per utterance, and recalls less urgent leases for more urgent claims. A stream prefers the
 * recognizer that served it last, which has adapted to its voice; else the one that other streams are least likely to
 * reuse.
 */
export class RecognizerPool {
  readonly #pool: LeasePool<Recognizer, Request>;
  readonly #answerWithinMs: number;
  /** By stream: number of the last lease. Removed when the stream closes. */
  readonly #lastLeases = new Map<number, number>();
  readonly #lastStreams = new WeakMap<Recognizer, number>();
  /** Unleased recognizers of an instance that supports concurrent utterances. */
  readonly #unused = new WeakMap<Recognizer, Recognizer[]>();
  readonly #busy = new WeakMap<Recognizer, Busy>();
  readonly #work = new WorkMeter();
  /** Only live streams, whose utterances are decoded during speech. */
  readonly #liveWork = new WorkMeter();
  readonly #problems = new Map<string, string>();
  readonly #trust = new ModelTrust();

  constructor({ processes, idleMs, answerWithinMs, onBroken }: RecognizerPoolOptions) {
    this.#answerWithinMs = answerWithinMs ?? DEFAULT_ANSWER_WITHIN_MS;
    this.#pool = new LeasePool<Recognizer, Request>(
      {
        inOrder: (waiting) => inOrder(waiting, (streamKey) => this.#lastLeases.get(streamKey) ?? 0),
        choose: ({ streamKey }, free) =>
          free.find(({ resource }) => this.#lastStreams.get(resource!) === streamKey) ?? free[0]!,
        mayReplace: () => true,
        recall: leaseToRecall,
        onGrant: ({ streamKey }, { resource, lease }) => {
          this.#lastLeases.set(streamKey, lease);
          this.#lastStreams.set(resource, streamKey);
        },
        onOpened: (kind) => this.#problems.delete(kind.maker.name),
        onOpenFailed: (kind, detail) => this.#problems.set(kind.maker.name, detail),
        onBroken: ({ key: model, maker }, detail) => {
          onBroken?.({ model, detail });
          // Only these models are chosen by operators and have alternatives.
          if (maker.name !== 'sherpa-onnx' || !this.#trust.noteBroken(model)) return;
          this.#problems.set(maker.name, `${model} ${OUT_OF_SERVICE}`);
          onBroken?.({ model, detail: OUT_OF_SERVICE });
        },
        isLasting: (error) => error instanceof RecognizerError && error.code === 'model',
        closedError: () => new RecognizerError('cancelled', 'the recognizers are closed'),
      },
      { mostLocal: processes, idleMs },
    );
  }

  /** @throws RecognizerError if the model cannot be loaded; the signal's reason */
  async claim(options: ClaimOptions): Promise<Lease> {
    const kind = kindOf(options.model);
    if (this.#trust.isOut(kind.key)) throw new RecognizerError('model', `${kind.key} ${OUT_OF_SERVICE}`);
    const lease = await this.#pool.lease({ ...options, kind });
    return this.#measured(lease, options.model, options.urgency() !== 'batch');
  }

  /** Loads another instance ahead of demand, up to `wanted` and the limit. */
  warm(capability: Capability, wanted: number): void {
    const kind = kindOf(capability);
    if (!this.#trust.isOut(kind.key)) this.#pool.warm(kind, wanted);
  }

  /** Call when the urgency of a claim may have changed. */
  reconsider(): void {
    this.#pool.serve();
  }

  forgetStream(streamKey: number): void {
    this.#lastLeases.delete(streamKey);
  }

  /** Seconds of work per second of speech in live streams; null before the first recognition. */
  liveRealTimeFactorOf(engine: EngineName): number | null {
    return this.#liveWork.realTimeFactorOf(engine);
  }

  statusOf(engine: EngineName): {
    loaded: number;
    busy: number;
    realTimeFactor: number | null;
    problem: string | null;
  } {
    const states = this.#pool.resources.filter(({ kind }) => kind.maker.name === engine).map(({ state }) => state);
    return {
      loaded: states.filter((state) => state === 'idle' || state === 'leased').length,
      busy: states.filter((state) => state === 'leased').length,
      realTimeFactor: this.#work.realTimeFactorOf(engine),
      problem: this.#problems.get(engine) ?? null,
    };
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  #measured(lease: PoolLease<Recognizer>, model: Capability, isLive: boolean): Lease {
    const engine = model.engine.name;
    const within = this.#answerWithinMs;
    const unused = this.#unusedOf(lease.resource);
    const recognizer = unused.pop() ?? lease.resource.beside!();
    const busy = this.#busyOf(lease.resource);
    let workMs = 0;
    return {
      recognizer,
      get isRecalled() {
        return lease.isRecalled;
      },
      work: async (answer) => {
        if (busy.answers++ === 0) busy.sinceMs = performance.now();
        try {
          return await answeredWithin(answer, within);
        } finally {
          if (--busy.answers === 0) {
            const busyMs = performance.now() - busy.sinceMs;
            workMs += busyMs;
            this.#work.add(engine, { workMs: busyMs, audioMs: 0 });
          }
        }
      },
      release: ({ broken, audioMs, hasText = false }) => {
        if (hasText) this.#trust.noteUnderstood(modelNameOf(model));
        this.#work.add(engine, { workMs: 0, audioMs });
        // An abandoned utterance says nothing about the time of a complete one.
        if (isLive && audioMs > 0) this.#liveWork.add(engine, { workMs, audioMs });
        unused.push(recognizer);
        lease.release({ broken });
      },
    };
  }

  #busyOf(instance: Recognizer): Busy {
    const busy = this.#busy.get(instance) ?? { answers: 0, sinceMs: 0 };
    this.#busy.set(instance, busy);
    return busy;
  }

  #unusedOf(instance: Recognizer): Recognizer[] {
    const unused = this.#unused.get(instance) ?? [instance];
    this.#unused.set(instance, unused);
    return unused;
  }
}

function kindOf(model: Capability): ResourceKind<Recognizer> {
  const { engine, description } = model;
  return {
    key: modelNameOf(model),
    maker: engine,
    isLocal: isLocal(engine.name),
    leasesAtOnce: description.utterancesAtOnce ?? 1,
    open: async () => await engine.load(description),
  };
}
