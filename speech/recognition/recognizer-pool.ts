import type { EngineName, RecognitionEngine, Recognizer } from '../recognizer.ts';
import { RecognizerError } from '../recognizer.ts';
import { type Claim, type ClaimOptions, type Granted, inOrder, whomToRecall } from './claims.ts';
import { type Capability, modelNameOf } from './router.ts';
import { answeredWithin, WorkMeter } from './work-meter.ts';

/** A recognizer for one utterance. */
export interface Lease {
  readonly recognizer: Recognizer;
  /** Somebody more urgent waits for it: give it back, unless the utterance is due itself by now. */
  readonly isRecalled: boolean;
  /** Waits for what was asked of the recognizer, measuring it. @throws RecognizerError `crashed` when it takes forever */
  work<Answer>(answer: Promise<Answer>): Promise<Answer>;
  /** To be called once. A broken instance, `broken` says how, is closed, and replaced when one is wanted. */
  giveBack(outcome: { broken: string | null; audioMs: number }): void;
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

const DEFAULT_IDLE_MS = 300_000;
const DEFAULT_ANSWER_WITHIN_MS = 120_000;
/** Whether a model was repaired is looked at so often. */
const DAMAGED_FOR_MS = 30_000;

/** A place for a recognizer, from the moment on that it is loaded until it is closed. */
interface Instance {
  readonly model: string;
  readonly capability: Capability;
  state: 'loading' | 'idle' | 'leased' | 'closing';
  recognizer: Recognizer | null;
  lastStreamKey: number | null;
  /** Number of the grant that it served last. */
  lastGrant: number;
  lease: Granted<Lease> | null;
  idleTimer: NodeJS.Timeout | null;
  closed: Promise<void> | null;
  /** It is closed so that one of this model can be loaded. */
  replacedBy: string | null;
}

/**
 * Recognizers and who has which. They are loaded when the first one claims them, leased for one utterance, taken back
 * from the less urgent when the more urgent wait, and closed when nobody wants them.
 */
export class RecognizerPool {
  readonly #options: RecognizerPoolOptions;
  readonly #instances = new Set<Instance>();
  readonly #claims = new Set<Claim<Lease>>();
  /** By stream: the number of the last grant. Streams are forgotten when they close. */
  readonly #lastGrants = new Map<number, number>();
  readonly #work = new WorkMeter();
  readonly #problems = new Map<EngineName, string>();
  /** Models that could not be loaded, by name, and when that is worth another try. */
  readonly #damaged = new Map<string, { error: RecognizerError; untilMs: number }>();
  #grants = 0;
  #claimsMade = 0;
  #isClosed = false;

  constructor(options: RecognizerPoolOptions) {
    this.#options = options;
  }

  /** @throws RecognizerError when the model cannot be loaded; the signal's reason when aborted */
  claim(options: ClaimOptions): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#claims.delete(claim);
        options.signal.removeEventListener('abort', abort);
      };
      const abort = (): void => claim.refuse(options.signal.reason);
      const claim: Claim<Lease> = {
        ...options,
        order: this.#claimsMade++,
        grant: (lease) => {
          leave();
          resolve(lease);
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      if (options.signal.aborted) return abort();
      const refusal = this.#refusalFor(modelNameOf(options.model));
      if (refusal !== null) return claim.refuse(refusal);
      options.signal.addEventListener('abort', abort);
      this.#claims.add(claim);
      this.reconsider();
    });
  }

  /** Loads another instance of a model that will be wanted soon, unless so many are there or there is no room. */
  warm(capability: Capability, wanted: number): void {
    const model = modelNameOf(capability);
    const isWanted = this.#count((instance) => instance.model === model) < wanted;
    if (isWanted && !this.#isClosed && this.#hasRoomFor(capability.engine)) this.#load(capability);
  }

  /** To be called when the urgency of a claim may have changed. */
  reconsider(): void {
    const coming = this.#coming();
    for (const claim of this.#claimsInOrder()) {
      const model = modelNameOf(claim.model);
      const idle = this.#idleInstanceFor(claim, model);
      if (idle !== null) {
        this.#grant(claim, idle);
        // Whose turn is next has changed.
        this.reconsider();
        return;
      }
      const expected = coming.get(model) ?? 0;
      if (expected > 0) coming.set(model, expected - 1);
      else if (this.#hasRoomFor(claim.model.engine)) this.#load(claim.model);
      else if (!this.#makeRoomFor(claim, model)) this.#recallFor(claim, model);
    }
  }

  forgetStream(streamKey: number): void {
    this.#lastGrants.delete(streamKey);
  }

  statusOf(engine: EngineName): {
    loaded: number;
    busy: number;
    realTimeFactor: number | null;
    problem: string | null;
  } {
    const instances = [...this.#instances].filter(({ capability }) => capability.engine.name === engine);
    return {
      loaded: instances.filter(({ state }) => state === 'idle' || state === 'leased').length,
      busy: instances.filter(({ state }) => state === 'leased').length,
      realTimeFactor: this.#work.realTimeFactorOf(engine),
      problem: this.#problems.get(engine) ?? null,
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const claim of this.#claims) claim.refuse(new RecognizerError('cancelled', 'the recognizers are closed'));
    await Promise.all([...this.#instances].map((instance) => this.#close(instance)));
  }

  #refusalFor(model: string): RecognizerError | null {
    if (this.#isClosed) return new RecognizerError('cancelled', 'the recognizers are closed');
    const damage = this.#damaged.get(model);
    return damage !== undefined && performance.now() < damage.untilMs ? damage.error : null;
  }

  /** How many instances of each model will be free before long without further ado. */
  #coming(): Map<string, number> {
    const coming = new Map<string, number>();
    for (const { state, model, lease, replacedBy } of this.#instances) {
      const key = replacedBy ?? model;
      if (state === 'loading' || replacedBy !== null || lease?.isRecalled === true) {
        coming.set(key, (coming.get(key) ?? 0) + 1);
      }
    }
    return coming;
  }

  #claimsInOrder(): Claim<Lease>[] {
    return inOrder(this.#claims, (streamKey) => this.#lastGrants.get(streamKey) ?? 0);
  }

  /** The one that served the stream last knows its voice; else the one that others are least likely to come back to. */
  #idleInstanceFor({ streamKey }: Claim<Lease>, model: string): Instance | null {
    const idle = [...this.#instances].filter((instance) => instance.state === 'idle' && instance.model === model);
    const own = idle.find(({ lastStreamKey }) => lastStreamKey === streamKey);
    return own ?? leastRecentlyUsed(idle);
  }

  #hasRoomFor(engine: RecognitionEngine): boolean {
    const ofEngine = this.#count((instance) => instance.capability.engine === engine);
    return (
      ofEngine < engine.maxInstances && (!isLocal(engine) || this.#count(isLocalInstance) < this.#options.processes)
    );
  }

  /** Closes an idle instance of another model, which is then replaced. */
  #makeRoomFor({ model: { engine } }: Claim<Lease>, model: string): boolean {
    const isEngineFull = this.#count((instance) => instance.capability.engine === engine) >= engine.maxInstances;
    const victim = leastRecentlyUsed(
      [...this.#instances].filter(
        (instance) =>
          instance.state === 'idle' &&
          (isEngineFull ? instance.capability.engine === engine : isLocalInstance(instance)),
      ),
    );
    if (victim === null) return false;
    victim.replacedBy = model;
    void this.#close(victim);
    return true;
  }

  #recallFor(claim: Claim<Lease>, model: string): void {
    const leases = [...this.#instances].flatMap((instance) => (instance.model === model ? (instance.lease ?? []) : []));
    const lease = whomToRecall(claim, leases);
    if (lease === null) return;
    lease.isRecalled = true;
    lease.claim.onRecall();
  }

  #grant(claim: Claim<Lease>, instance: Instance): void {
    const lease = { claim, isRecalled: false, atMs: performance.now() };
    instance.state = 'leased';
    instance.lease = lease;
    instance.lastStreamKey = claim.streamKey;
    instance.lastGrant = ++this.#grants;
    this.#lastGrants.set(claim.streamKey, instance.lastGrant);
    if (instance.idleTimer !== null) clearTimeout(instance.idleTimer);
    const within = this.#options.answerWithinMs ?? DEFAULT_ANSWER_WITHIN_MS;
    let workMs = 0;
    claim.grant({
      recognizer: instance.recognizer!,
      get isRecalled() {
        return lease.isRecalled;
      },
      work: async (answer) => {
        const startedAt = performance.now();
        try {
          return await answeredWithin(answer, within);
        } finally {
          workMs += performance.now() - startedAt;
        }
      },
      giveBack: ({ broken, audioMs }) => {
        this.#work.add(instance.capability.engine.name, { workMs, audioMs });
        instance.lease = null;
        if (broken === null && instance.state === 'leased') this.#becomeIdle(instance);
        else void this.#close(instance);
        // Those that are in use when all is closed do not break.
        if (broken !== null && !this.#isClosed) this.#options.onBroken?.({ model: instance.model, detail: broken });
        this.reconsider();
      },
    });
  }

  #load(capability: Capability): void {
    const instance: Instance = {
      model: modelNameOf(capability),
      capability,
      state: 'loading',
      recognizer: null,
      lastStreamKey: null,
      lastGrant: 0,
      lease: null,
      idleTimer: null,
      closed: null,
      replacedBy: null,
    };
    this.#instances.add(instance);
    const { engine, description } = capability;
    // An engine may throw at once.
    const loading = (async () => engine.load(description))();
    loading.then(
      (recognizer) => {
        instance.recognizer = recognizer;
        this.#problems.delete(engine.name);
        if (instance.state === 'loading') this.#becomeIdle(instance);
        this.reconsider();
      },
      (error: unknown) => this.#failToLoad(instance, error),
    );
    instance.closed = loading.then(
      () => {},
      () => {},
    );
  }

  /** A model that is damaged is so for all who wait for it; whatever else failed may go well for the next one. */
  #failToLoad(instance: Instance, error: unknown): void {
    this.#instances.delete(instance);
    this.#problems.set(instance.capability.engine.name, error instanceof Error ? error.message : String(error));
    const waiting = this.#claimsInOrder().filter((claim) => modelNameOf(claim.model) === instance.model);
    const isDamaged = error instanceof RecognizerError && error.code === 'model';
    if (isDamaged) this.#damaged.set(instance.model, { error, untilMs: performance.now() + DAMAGED_FOR_MS });
    for (const claim of isDamaged ? waiting : waiting.slice(0, 1)) claim.refuse(error);
    this.reconsider();
  }

  #becomeIdle(instance: Instance): void {
    instance.state = 'idle';
    instance.idleTimer = setTimeout(() => void this.#close(instance), this.#options.idleMs ?? DEFAULT_IDLE_MS).unref();
  }

  async #close(instance: Instance): Promise<void> {
    if (instance.state === 'closing') return instance.closed ?? undefined;
    const isLoading = instance.state === 'loading';
    instance.state = 'closing';
    if (instance.idleTimer !== null) clearTimeout(instance.idleTimer);
    const loaded = isLoading ? instance.closed : null;
    instance.closed = (async () => {
      await loaded;
      await instance.recognizer?.close().catch(() => {});
      this.#instances.delete(instance);
      if (!this.#isClosed) this.reconsider();
    })();
    await instance.closed;
  }

  #count(predicate: (instance: Instance) => boolean): number {
    let count = 0;
    for (const instance of this.#instances) if (predicate(instance)) count += 1;
    return count;
  }
}

/** Upstream servers have their own cores. */
function isLocal(engine: RecognitionEngine): boolean {
  return engine.name !== 'openai';
}

function isLocalInstance({ capability }: Instance): boolean {
  return isLocal(capability.engine);
}

function leastRecentlyUsed(instances: readonly Instance[]): Instance | null {
  return instances.toSorted((a, b) => a.lastGrant - b.lastGrant)[0] ?? null;
}
