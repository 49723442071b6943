/** What a pool opens; resources of the same key are interchangeable. */
export interface ResourceKind<Resource> {
  key: string;
  /** Who makes them, compared by identity: `maxInstances` is the limit of all its resources together. */
  maker: { readonly name: string; readonly maxInstances: number };
  /** Whether it counts towards the pool's own limit. */
  isLocal: boolean;
  /** How many may have one of them at the same time. Default 1. */
  leasesAtOnce?: number;
  /** Aborted when the pool closes. */
  open(signal: AbortSignal): Promise<Resource>;
}

export interface LeaseRequest<Resource> {
  kind: ResourceKind<Resource>;
  signal: AbortSignal;
  /** Whether the resource must have no other lease meanwhile. Default: other leases are no matter. */
  isAlone?: boolean;
  /** Somebody more urgent wants the resource: give it back soon. */
  onRecall?: () => void;
}

export interface Lease<Resource> {
  readonly resource: Resource;
  readonly isRecalled: boolean;
  /**
   * Call it once. A broken resource, `broken` says how, is closed, and replaced when one is wanted. Its other leases
   * stay until they are given back.
   */
  giveBack(outcome: { broken: string | null }): void;
}

/** A lease as the policy sees it. */
export interface Granted<Request> {
  readonly request: Request;
  readonly atMs: number;
  isRecalled: boolean;
}

export interface PooledResource<Resource> {
  readonly kind: ResourceKind<Resource>;
  readonly state: 'opening' | 'idle' | 'leased' | 'closing';
  /** Null until it is open. */
  readonly resource: Resource | null;
  /** Number of its last lease in the pool's count; 0 before the first. */
  readonly lastLease: number;
}

/** Who gets what, and what becomes of the rest. */
export interface LeasePolicy<Resource, Request extends LeaseRequest<Resource>> {
  /** The order in which requests are served; they come in the order of asking. */
  inOrder(waiting: readonly Request[]): readonly Request[];
  /** One of the resources of its kind that are free: idle ones or, when none is, those with the fewest leases; null when none will do. */
  choose(request: Request, free: readonly PooledResource<Resource>[]): PooledResource<Resource> | null;
  /** Whether an idle resource may be closed to make room for the request. */
  mayReplace(idle: PooledResource<Resource>, request: Request, waiting: readonly Request[]): boolean;
  /** Which lease of its kind is recalled for a request that finds no room; null for none. Default: none. */
  recall?(request: Request, leases: readonly Granted<Request>[]): Granted<Request> | null;
  /** Called before anybody else is served. `overtaken`: those before it in order who could not be served. */
  onGrant(request: Request, details: { resource: Resource; lease: number; overtaken: readonly Request[] }): void;
  onOpened?(kind: ResourceKind<Resource>): void;
  onOpenFailed(kind: ResourceKind<Resource>, detail: string): void;
  /** Not called for leases that break because the pool closes. */
  onBroken(kind: ResourceKind<Resource>, detail: string): void;
  /** Whether an error of `open` will meet all who want this kind. Otherwise only the first one hears of it. */
  isLasting(error: unknown): boolean;
  /** Whether the last resource of all stays open when nobody wants it. */
  keepsLast: boolean;
  /** Why requests are refused once the pool is closed. */
  closedError(): Error;
}

export interface LeasePoolOptions {
  /** Local resources at most, of all kinds together. */
  mostLocal: number;
  /** How long a resource that nobody wants stays open. Default: 5 minutes. */
  idleMs?: number | undefined;
}

const DEFAULT_IDLE_MS = 300_000;
/** How long requests are refused with a lasting error before another try. */
const DAMAGED_FOR_MS = 30_000;

/**
 * Resources and who has which: opened when somebody wants one, leased, recalled for the more urgent, closed when nobody
 * wants them or others need their place, and replaced when they break.
 */
export class LeasePool<Resource extends { close(): Promise<void> }, Request extends LeaseRequest<Resource>> {
  readonly #policy: LeasePolicy<Resource, Request>;
  readonly #options: LeasePoolOptions;
  readonly #entries = new Set<Entry<Resource, Request>>();
  /** In the order of asking. */
  readonly #waiting = new Map<Request, Waiter<Resource>>();
  readonly #damaged = new Map<string, { error: unknown; untilMs: number }>();
  readonly #closed = new AbortController();
  readonly #closing = new Set<Promise<void>>();
  #leases = 0;

  constructor(policy: LeasePolicy<Resource, Request>, options: LeasePoolOptions) {
    this.#policy = policy;
    this.#options = options;
  }

  get resources(): readonly PooledResource<Resource>[] {
    return [...this.#entries];
  }

  /** @throws what `open` threw; the policy's `closedError`; the signal's reason */
  lease(request: Request): Promise<Lease<Resource>> {
    const { kind, signal } = request;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      this.#closed.signal.throwIfAborted();
      const damage = this.#damaged.get(kind.key);
      if (damage !== undefined && performance.now() < damage.untilMs) throw damage.error;
      const leave = () => {
        this.#waiting.delete(request);
        signal.removeEventListener('abort', abort);
      };
      const refuse = (error: unknown) => {
        leave();
        reject(error);
      };
      const abort = () => {
        refuse(signal.reason);
        this.serve();
      };
      const grant = (lease: Lease<Resource>) => {
        leave();
        resolve(lease);
      };
      signal.addEventListener('abort', abort, { once: true });
      this.#waiting.set(request, { grant, refuse });
      this.serve();
    });
  }

  /** Opens another resource that will be wanted soon, unless `wanted` of its kind are there or there is no room. */
  warm(kind: ResourceKind<Resource>, wanted: number): void {
    const isWanted = this.#count((entry) => entry.kind.key === kind.key) < wanted;
    if (isWanted && !this.#closed.signal.aborted && this.#hasRoomFor(kind)) this.#open(kind);
  }

  /** Serves who can be served. To be called when what the policy looks at has changed. */
  serve(): void {
    while (this.#serveOne());
  }

  /** Refuses all who wait and closes all resources, those in use included. */
  async close(): Promise<void> {
    this.#closed.abort(this.#policy.closedError());
    for (const { refuse } of [...this.#waiting.values()]) refuse(this.#closed.signal.reason);
    for (const entry of [...this.#entries]) this.#close(entry);
    // What is still being opened sees the signal, and is closed as soon as it is open.
    await Promise.all([...this.#entries].map(({ opened }) => opened));
    await Promise.all(this.#closing);
  }

  /** Until a lease is granted, which may change the order of the others. False when none is. */
  #serveOne(): boolean {
    const coming = this.#coming();
    const overtaken: Request[] = [];
    for (const request of this.#policy.inOrder([...this.#waiting.keys()])) {
      const { key } = request.kind;
      // To share a resource is to keep it from those who wait for a resource, or a place, of their own.
      const chosen = this.#freeFor(request, { mayShare: overtaken.length === 0 });
      if (chosen !== null) {
        // Those who share it would be faster with one more.
        if (chosen.leases.size > 0 && !coming.has(key) && this.#hasRoomFor(request.kind)) this.#open(request.kind);
        this.#grant(request, chosen, overtaken);
        return true;
      }
      const expected = coming.get(key) ?? 0;
      if (expected > 0) coming.set(key, expected - 1);
      else if (this.#hasRoomFor(request.kind)) this.#open(request.kind);
      else if (!this.#makeRoomFor(request)) {
        overtaken.push(request);
        this.#recallFor(request);
      }
    }
    return false;
  }

  /** How many resources of each key will be free soon; they are spoken for by those who wait first. */
  #coming(): Map<string, number> {
    const coming = new Map<string, number>();
    for (const { state, kind, leases, replacedBy } of this.#entries) {
      const recalled = [...leases].filter(({ isRecalled }) => isRecalled).length;
      const count = replacedBy !== null ? 1 : state === 'opening' ? (kind.leasesAtOnce ?? 1) : recalled;
      const key = replacedBy ?? kind.key;
      if (count > 0) coming.set(key, (coming.get(key) ?? 0) + count);
    }
    return coming;
  }

  #freeFor(request: Request, { mayShare }: { mayShare: boolean }): Entry<Resource, Request> | null {
    const idle = this.#idle((entry) => entry.kind.key === request.kind.key);
    const free = idle.length === 0 && mayShare && !request.isAlone ? this.#shareable(request.kind) : idle;
    return free.length === 0 ? null : (this.#policy.choose(request, free) as Entry<Resource, Request> | null);
  }

  /** Those with the fewest leases, if one more is possible. */
  #shareable({ key, leasesAtOnce = 1 }: ResourceKind<Resource>): Entry<Resource, Request>[] {
    const shareable = [...this.#entries].filter(
      ({ kind, state, leases }) =>
        kind.key === key &&
        state === 'leased' &&
        leases.size < leasesAtOnce &&
        ![...leases].some(({ request }) => request.isAlone),
    );
    const fewest = Math.min(...shareable.map(({ leases }) => leases.size));
    return shareable.filter(({ leases }) => leases.size === fewest).sort((a, b) => a.lastLease - b.lastLease);
  }

  /** Least recently used first. */
  #idle(predicate: (entry: Entry<Resource, Request>) => boolean): Entry<Resource, Request>[] {
    return [...this.#entries]
      .filter((entry) => entry.state === 'idle' && predicate(entry))
      .sort((a, b) => a.lastLease - b.lastLease);
  }

  #hasRoomFor({ maker, isLocal }: ResourceKind<Resource>): boolean {
    if (this.#count(({ kind }) => kind.maker === maker) >= maker.maxInstances) return false;
    return !isLocal || this.#count(({ kind }) => kind.isLocal) < this.#options.mostLocal;
  }

  /** Closes an idle resource; another one is opened in its place. */
  #makeRoomFor(request: Request): boolean {
    const { maker, key } = request.kind;
    const waiting = [...this.#waiting.keys()];
    const isMakerFull = this.#count(({ kind }) => kind.maker === maker) >= maker.maxInstances;
    const [victim] = this.#idle(
      (entry) =>
        (isMakerFull ? entry.kind.maker === maker : entry.kind.isLocal) &&
        this.#policy.mayReplace(entry, request, waiting),
    );
    if (victim === undefined) return false;
    victim.replacedBy = key;
    this.#close(victim);
    return true;
  }

  #recallFor(request: Request): void {
    // Who must be alone gains nothing by one of several leases.
    const leases = [...this.#entries].flatMap(({ kind, leases }) =>
      kind.key === request.kind.key && (!request.isAlone || leases.size === 1) ? [...leases] : [],
    );
    const recalled = this.#policy.recall?.(request, leases) ?? null;
    if (recalled === null) return;
    recalled.isRecalled = true;
    recalled.request.onRecall?.();
  }

  #grant(request: Request, entry: Entry<Resource, Request>, overtaken: readonly Request[]): void {
    const resource = entry.resource!;
    const lease = { request, atMs: performance.now(), isRecalled: false };
    entry.state = 'leased';
    entry.leases.add(lease);
    entry.lastLease = ++this.#leases;
    if (entry.idleTimer !== null) clearTimeout(entry.idleTimer);
    this.#policy.onGrant(request, { resource, lease: entry.lastLease, overtaken });
    this.#waiting.get(request)!.grant({
      resource,
      get isRecalled() {
        return lease.isRecalled;
      },
      giveBack: ({ broken }) => {
        entry.leases.delete(lease);
        // Who shared it breaks with it: that is one resource that broke.
        const isNews = broken !== null && entry.state === 'leased' && !this.#closed.signal.aborted;
        if (broken !== null) this.#close(entry);
        else if (entry.state === 'leased' && entry.leases.size === 0) this.#rest(entry);
        if (isNews) this.#policy.onBroken(entry.kind, broken);
        this.serve();
      },
    });
  }

  #open(kind: ResourceKind<Resource>): void {
    const entry: Entry<Resource, Request> = {
      ...{ kind, state: 'opening', resource: null, lastLease: 0 },
      ...{ leases: new Set<Granted<Request>>(), idleTimer: null, opened: Promise.resolve(), replacedBy: null },
    };
    this.#entries.add(entry);
    // It may throw at once.
    const opening = (async () => await kind.open(this.#closed.signal))();
    entry.opened = opening.then(
      (resource) => {
        entry.resource = resource;
        this.#policy.onOpened?.(kind);
        this.#rest(entry);
        if (this.#closed.signal.aborted) this.#close(entry);
        this.serve();
      },
      (error: unknown) => this.#failToOpen(entry, error),
    );
  }

  #failToOpen(entry: Entry<Resource, Request>, error: unknown): void {
    const { kind } = entry;
    this.#entries.delete(entry);
    if (this.#closed.signal.aborted) return;
    this.#policy.onOpenFailed(kind, error instanceof Error ? error.message : String(error));
    const inOrder = this.#policy.inOrder([...this.#waiting.keys()]);
    const concerned = inOrder.filter((request) => request.kind.key === kind.key);
    const isLasting = this.#policy.isLasting(error);
    if (isLasting) this.#damaged.set(kind.key, { error, untilMs: performance.now() + DAMAGED_FOR_MS });
    for (const request of isLasting ? concerned : concerned.slice(0, 1)) this.#waiting.get(request)!.refuse(error);
    this.serve();
  }

  #rest(entry: Entry<Resource, Request>): void {
    entry.state = 'idle';
    entry.idleTimer = setTimeout(() => {
      const isLast = this.#count(({ state }) => state !== 'closing') === 1;
      if (isLast && this.#policy.keepsLast) this.#rest(entry);
      else this.#close(entry);
    }, this.#options.idleMs ?? DEFAULT_IDLE_MS).unref();
  }

  #close(entry: Entry<Resource, Request>): void {
    if (entry.state === 'closing' || entry.state === 'opening') return;
    entry.state = 'closing';
    if (entry.idleTimer !== null) clearTimeout(entry.idleTimer);
    const closed = this.#end(entry);
    this.#closing.add(closed);
    void closed.then(() => this.#closing.delete(closed));
  }

  async #end(entry: Entry<Resource, Request>): Promise<void> {
    await entry.resource?.close().catch(() => {});
    this.#entries.delete(entry);
    this.serve();
  }

  #count(predicate: (entry: Entry<Resource, Request>) => boolean): number {
    let count = 0;
    for (const entry of this.#entries) if (predicate(entry)) count += 1;
    return count;
  }
}

interface Entry<Resource, Request> extends PooledResource<Resource> {
  state: PooledResource<Resource>['state'];
  resource: Resource | null;
  lastLease: number;
  leases: Set<Granted<Request>>;
  idleTimer: NodeJS.Timeout | null;
  /** Resolves when it is open or could not be opened. */
  opened: Promise<void>;
  /** The key of the kind that it is closed for. */
  replacedBy: string | null;
}

interface Waiter<Resource> {
  grant: (lease: Lease<Resource>) => void;
  refuse: (error: unknown) => void;
}
