import { type SynthesisEngine, type Synthesizer, SynthesizerError } from '../synthesizer.ts';

/** An instance for one clause. */
export interface Lease {
  readonly synthesizer: Synthesizer;
  /** To be called once. A broken instance, `broken` says how, is closed. */
  giveBack(outcome: { broken: string | null }): void;
}

export interface LeaseOptions {
  engine: SynthesisEngine;
  model: string;
  /** Only one that has spoken nothing yet will do: the others may have died of what killed the last. */
  isFresh: boolean;
  /** Of its text: somebody waits for it who has heard nothing yet, and is served before those who have, for a while. */
  isFirst: boolean;
  signal: AbortSignal;
}

export interface InstancePoolOptions {
  /** Instances of local engines at most, of all models together. */
  processes: number;
  /** How long an instance that nobody wants stays. Default 5 minutes; the last one stays, for who comes next. */
  idleMs?: number;
  /** One broke while it spoke, or could not be started. */
  onBroken?: (instance: { model: string; detail: string }) => void;
}

const DEFAULT_IDLE_MS = 300_000;
/** Whether a model was repaired is looked at so often. */
const DAMAGED_FOR_MS = 30_000;
/**
 * So often an idle instance is left to those who come later and want its model, rather than closed for one who wants
 * another: to load a model for every clause would serve nobody.
 */
const MOST_OVERTAKEN = 3;
/** Whoever hears a text waits no longer for its next clause than that before it has its turn with the beginnings. */
const PATIENCE_MS = 2000;

interface Claim extends LeaseOptions {
  key: string;
  askedAtMs: number;
  overtaken: number;
  grant: (lease: Lease) => void;
  refuse: (error: unknown) => void;
}

interface Instance {
  readonly engine: SynthesisEngine;
  readonly key: string;
  state: 'starting' | 'idle' | 'leased' | 'closing';
  synthesizer: Synthesizer | null;
  hasSpoken: boolean;
  /** Number of the last lease. */
  lastLease: number;
  idleTimer: NodeJS.Timeout | null;
  /** Resolves when it is started or could not be. */
  started: Promise<void>;
  /** The model for which it is closed. */
  replacedBy: string | null;
}

/**
 * Instances of engines and who has which. They are started when somebody wants one, leased for a clause in the order of
 * asking, beginnings of texts before what has not waited for long, and closed when nobody wants them or others need their place.
 */
export class InstancePool {
  readonly #options: InstancePoolOptions;
  readonly #instances = new Set<Instance>();
  /** In the order of asking. */
  readonly #claims = new Set<Claim>();
  readonly #damaged = new Map<string, { error: SynthesizerError; untilMs: number }>();
  readonly #closed = new AbortController();
  readonly #closing = new Set<Promise<void>>();
  #leases = 0;

  constructor(options: InstancePoolOptions) {
    this.#options = options;
  }

  /** @throws SynthesizerError when none can be started; the signal's reason */
  lease(options: LeaseOptions): Promise<Lease> {
    const key = keyOf(options.engine, options.model);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#claims.delete(claim);
        options.signal.removeEventListener('abort', abort);
      };
      const abort = (): void => {
        claim.refuse(options.signal.reason);
        this.#serve();
      };
      const claim: Claim = {
        ...options,
        key,
        askedAtMs: performance.now(),
        overtaken: 0,
        grant: (lease) => {
          leave();
          resolve(lease);
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      if (options.signal.aborted) return claim.refuse(options.signal.reason);
      if (this.#closed.signal.aborted) return claim.refuse(this.#closed.signal.reason);
      const damage = this.#damaged.get(key);
      if (damage !== undefined && performance.now() < damage.untilMs) return claim.refuse(damage.error);
      options.signal.addEventListener('abort', abort, { once: true });
      this.#claims.add(claim);
      this.#serve();
    });
  }

  /** Whoever waits is refused, and instances that speak are ended. */
  async close(): Promise<void> {
    this.#closed.abort(new SynthesizerError('crashed', 'speech synthesis was closed'));
    for (const claim of [...this.#claims]) claim.refuse(this.#closed.signal.reason);
    for (const instance of [...this.#instances]) this.#close(instance);
    // Whatever is still being started sees the signal that it is started with, and is closed if it does not heed it.
    await Promise.all([...this.#instances].map(({ started }) => started));
    await Promise.all(this.#closing);
  }

  #serve(): void {
    /** Instances that will be there before long, and are spoken for by those who came first. */
    const coming = new Map<string, number>();
    for (const { state, key, replacedBy } of this.#instances) {
      const comes = state === 'starting' ? key : replacedBy;
      if (comes !== null) coming.set(comes, (coming.get(comes) ?? 0) + 1);
    }
    const passed: Claim[] = [];
    const overdueMs = performance.now() - PATIENCE_MS;
    const isUrgent = ({ isFirst, askedAtMs }: Claim): boolean => isFirst || askedAtMs <= overdueMs;
    const inTurn = [...this.#claims].toSorted((a, b) => Number(isUrgent(b)) - Number(isUrgent(a)));
    for (const claim of inTurn) {
      const idle = this.#idleFor(claim);
      if (idle !== null) {
        for (const other of passed) other.overtaken += 1;
        this.#grant(claim, idle);
        continue;
      }
      const expected = coming.get(claim.key) ?? 0;
      if (expected > 0) coming.set(claim.key, expected - 1);
      else if (this.#hasRoomFor(claim.engine)) this.#start(claim);
      else if (!this.#makeRoomFor(claim)) passed.push(claim);
    }
  }

  #idleFor({ key, isFresh }: Claim): Instance | null {
    const idle = [...this.#instances].filter((instance) => instance.state === 'idle' && instance.key === key);
    return leastRecentlyUsed(isFresh ? idle.filter(({ hasSpoken }) => !hasSpoken) : idle);
  }

  #hasRoomFor(engine: SynthesisEngine): boolean {
    return (
      this.#count(engine) < engine.maxInstances && (!isLocal(engine) || this.#countLocal() < this.#options.processes)
    );
  }

  /** Closes an idle instance, in whose place one is then started. */
  #makeRoomFor(claim: Claim): boolean {
    const { engine, key, isFresh, overtaken } = claim;
    const isEngineFull = this.#count(engine) >= engine.maxInstances;
    const wanted = new Set<string>();
    if (overtaken < MOST_OVERTAKEN) for (const other of this.#claims) if (!other.isFresh) wanted.add(other.key);
    const victim = leastRecentlyUsed(
      [...this.#instances].filter(
        (instance) =>
          instance.state === 'idle' &&
          (isEngineFull ? instance.engine === engine : isLocal(instance.engine)) &&
          (instance.key === key ? isFresh : !wanted.has(instance.key)),
      ),
    );
    if (victim === null) return false;
    victim.replacedBy = key;
    this.#close(victim);
    return true;
  }

  #grant(claim: Claim, instance: Instance): void {
    instance.state = 'leased';
    instance.hasSpoken = true;
    instance.lastLease = ++this.#leases;
    if (instance.idleTimer !== null) clearTimeout(instance.idleTimer);
    claim.grant({
      synthesizer: instance.synthesizer!,
      giveBack: ({ broken }) => {
        // Those that are in use when all is closed do not break.
        if (broken !== null && !this.#closed.signal.aborted) {
          this.#options.onBroken?.({ model: instance.key, detail: broken });
        }
        if (broken !== null) this.#close(instance);
        else if (instance.state === 'leased') this.#rest(instance);
        this.#serve();
      },
    });
  }

  #start({ engine, model, key }: Claim): void {
    const instance: Instance = {
      engine,
      key,
      state: 'starting',
      synthesizer: null,
      hasSpoken: false,
      lastLease: 0,
      idleTimer: null,
      started: Promise.resolve(),
      replacedBy: null,
    };
    this.#instances.add(instance);
    // An engine may throw at once.
    const starting = (async () => await engine.start({ model, signal: this.#closed.signal }))();
    instance.started = starting.then(
      (synthesizer) => {
        instance.synthesizer = synthesizer;
        this.#rest(instance);
        if (this.#closed.signal.aborted) this.#close(instance);
        this.#serve();
      },
      (error: unknown) => this.#failToStart(instance, error),
    );
  }

  /** A model that is damaged is so for all who wait for it; whatever else failed may go well for the next one. */
  #failToStart(instance: Instance, error: unknown): void {
    this.#instances.delete(instance);
    if (this.#closed.signal.aborted) return;
    const detail = error instanceof Error ? error.message : String(error);
    this.#options.onBroken?.({ model: instance.key, detail });
    const waiting = [...this.#claims].filter(({ key }) => key === instance.key);
    const isDamaged = error instanceof SynthesizerError && error.code === 'model';
    if (isDamaged) this.#damaged.set(instance.key, { error, untilMs: performance.now() + DAMAGED_FOR_MS });
    for (const claim of isDamaged ? waiting : waiting.slice(0, 1)) claim.refuse(error);
    this.#serve();
  }

  #rest(instance: Instance): void {
    instance.state = 'idle';
    instance.idleTimer = setTimeout(() => {
      const open = [...this.#instances].filter(({ state }) => state !== 'closing');
      if (open.length === 1) return this.#rest(instance);
      this.#close(instance);
      this.#serve();
    }, this.#options.idleMs ?? DEFAULT_IDLE_MS).unref();
  }

  #close(instance: Instance): void {
    // One that is being started is closed by the signal that it was started with.
    if (instance.state === 'closing' || instance.state === 'starting') return;
    instance.state = 'closing';
    if (instance.idleTimer !== null) clearTimeout(instance.idleTimer);
    const closed = this.#end(instance);
    this.#closing.add(closed);
    void closed.then(() => this.#closing.delete(closed));
  }

  async #end(instance: Instance): Promise<void> {
    await instance.synthesizer?.close().catch(() => {});
    this.#instances.delete(instance);
    this.#serve();
  }

  #count(engine: SynthesisEngine): number {
    let count = 0;
    for (const instance of this.#instances) if (instance.engine === engine) count += 1;
    return count;
  }

  #countLocal(): number {
    let count = 0;
    for (const { engine } of this.#instances) if (isLocal(engine)) count += 1;
    return count;
  }
}

/** Upstream servers have their own cores. */
function isLocal({ name }: SynthesisEngine): boolean {
  return name !== 'openai';
}

function keyOf({ name }: SynthesisEngine, model: string): string {
  return `${name}/${model}`;
}

function leastRecentlyUsed(instances: readonly Instance[]): Instance | null {
  let least: Instance | null = null;
  for (const instance of instances) if (least === null || instance.lastLease < least.lastLease) least = instance;
  return least;
}
