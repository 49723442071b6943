import { LeasePool, type LeaseRequest, type Lease as PoolLease, type ResourceKind } from '../../runtime/lease-pool.ts';
import type { EngineName, Recognizer } from '../recognizer.ts';
import { RecognizerError } from '../recognizer.ts';
import { type ClaimOptions, inOrder, whomToRecall } from './claims.ts';
import { ModelTrust } from './model-trust.ts';
import { type Capability, modelNameOf } from './router.ts';
import { answeredWithin, WorkMeter } from './work-meter.ts';

/** A recognizer for one utterance; it may share its process with others. */
export interface Lease {
  readonly recognizer: Recognizer;
  /** Somebody more urgent waits for it: give it back, unless the utterance is due itself by now. */
  readonly isRecalled: boolean;
  /** Waits for what was asked of the recognizer, measuring it. @throws RecognizerError `crashed` when it takes forever */
  work<Answer>(answer: Promise<Answer>): Promise<Answer>;
  /** To be called once. A broken instance, `broken` says how, is closed, and replaced when one is wanted. */
  giveBack(outcome: { broken: string | null; audioMs: number; hasText?: boolean }): void;
}

export interface RecognizerPoolOptions {
  /** Instances of local engines at most, of all models together. */
  processes: number;
  /** How long an instance that nobody wants stays loaded. Default 5 minutes. */
  idleMs?: number;
  /** How long a recognizer may take for one answer before it counts as dead. Default 2 minutes. */
  answerWithinMs?: number;
  onBroken?: (instance: { model: string; detail: string }) => void;
}

const OUT_OF_SERVICE =
  'is out of service for 10 minutes: its process crashed on all that was said. Run tandem models check, and fetch it again';
const DEFAULT_ANSWER_WITHIN_MS = 120_000;

/** An instance works while it owes an answer to any of its leases. */
interface Busy {
  answers: number;
  sinceMs: number;
}

interface Request extends ClaimOptions, LeaseRequest<Recognizer> {
  isAlone: boolean;
  onRecall: () => void;
}

/**
 * Recognizers, leased for one utterance, and taken back from the less urgent when the more urgent wait. A stream gets
 * the one that served it last, which knows its voice; else the one that others are least likely to come back to.
 */
export class RecognizerPool {
  readonly #pool: LeasePool<Recognizer, Request>;
  readonly #answerWithinMs: number;
  /** By stream: the number of the last lease. Streams are forgotten when they close. */
  readonly #lastLeases = new Map<number, number>();
  readonly #lastStreams = new WeakMap<Recognizer, number>();
  /** Of an instance that recognises several utterances at once: those of its recognizers that nobody has. */
  readonly #unused = new WeakMap<Recognizer, Recognizer[]>();
  readonly #busy = new WeakMap<Recognizer, Busy>();
  readonly #work = new WorkMeter();
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
        recall: whomToRecall,
        onGrant: ({ streamKey }, { resource, lease }) => {
          this.#lastLeases.set(streamKey, lease);
          this.#lastStreams.set(resource, streamKey);
        },
        onOpened: (kind) => this.#problems.delete(kind.maker.name),
        onOpenFailed: (kind, detail) => this.#problems.set(kind.maker.name, detail),
        onBroken: ({ key: model, maker }, detail) => {
          onBroken?.({ model, detail });
          // Only those are chosen by operators, and have others to take over.
          if (maker.name !== 'sherpa-onnx' || !this.#trust.noteBroken(model)) return;
          this.#problems.set(maker.name, `${model} ${OUT_OF_SERVICE}`);
          onBroken?.({ model, detail: OUT_OF_SERVICE });
        },
        isLasting: (error) => error instanceof RecognizerError && error.code === 'model',
        keepsLast: false,
        closedError: () => new RecognizerError('cancelled', 'the recognizers are closed'),
      },
      { mostLocal: processes, idleMs },
    );
  }

  /** @throws RecognizerError when the model cannot be loaded; the signal's reason when aborted */
  async claim(options: ClaimOptions): Promise<Lease> {
    const kind = kindOf(options.model);
    if (this.#trust.isOut(kind.key)) throw new RecognizerError('model', `${kind.key} ${OUT_OF_SERVICE}`);
    const lease = await this.#pool.lease({ ...options, kind });
    return this.#measured(lease, options.model);
  }

  /** Loads another instance of a model that will be wanted soon, unless so many are there or there is no room. */
  warm(capability: Capability, wanted: number): void {
    const kind = kindOf(capability);
    if (!this.#trust.isOut(kind.key)) this.#pool.warm(kind, wanted);
  }

  /** To be called when the urgency of a claim may have changed. */
  reconsider(): void {
    this.#pool.serve();
  }

  forgetStream(streamKey: number): void {
    this.#lastLeases.delete(streamKey);
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

  #measured(lease: PoolLease<Recognizer>, model: Capability): Lease {
    const engine = model.engine.name;
    const within = this.#answerWithinMs;
    const unused = this.#unusedOf(lease.resource);
    const recognizer = unused.pop() ?? lease.resource.beside!();
    const busy = this.#busyOf(lease.resource);
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
          if (--busy.answers === 0) this.#work.add(engine, { workMs: performance.now() - busy.sinceMs, audioMs: 0 });
        }
      },
      giveBack: ({ broken, audioMs, hasText = false }) => {
        if (hasText) this.#trust.noteUnderstood(modelNameOf(model));
        this.#work.add(engine, { workMs: 0, audioMs });
        unused.push(recognizer);
        lease.giveBack({ broken });
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
    // Upstream servers have their own cores.
    isLocal: engine.name !== 'openai',
    leasesAtOnce: description.utterancesAtOnce ?? 1,
    open: async () => await engine.load(description),
  };
}
