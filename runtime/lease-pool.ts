/** A kind of pooled resource. Resources with the same key are interchangeable. */
export interface ResourceKind<Resource> {
  key: string;
  /** Compared by identity: `maxInstances` limits all its resources together. */
  maker: { readonly name: string; readonly maxInstances: number };
  /** Whether it counts towards the pool's own limit. */
  isLocal: boolean;
  /** Concurrent leases of one resource. Default 1. */
  leasesAtOnce?: number;
  /** The signal aborts when the pool closes. */
  open(signal: AbortSignal): Promise<Resource>;
}

export interface LeaseRequest<Resource> {
  kind: ResourceKind<Resource>;
  signal: AbortSignal;
  /** Whether the resource must have no other lease at the time. Default false. */
  isAlone?: boolean;
  /** Called when a more urgent request needs the resource: return it soon. */
  onRecall?: () => void;
}

export interface Lease<Resource> {
  readonly resource: Resource;
  readonly isRecalled: boolean;
  /**
   * Ends the lease; call it once. If `broken` gives a reason, the resource is closed and replaced on demand. Its other
   * leases stay valid until they are released.
   */
  release(outcome: { broken: string | null }): void;
}

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
  /** Sequence number of its last lease; 0 before the first. */
  readonly lastLease: number;
}

/** Assigns resources to requests. */
export interface LeasePolicy<Resource, Request extends LeaseRequest<Resource>> {
  /** Sorts the waiting requests, which are given in order of arrival. */
  inOrder(waiting: readonly Request[]): readonly Request[];
  /**
   * Picks one of the free resources of the request's kind: idle ones, or else those with the fewest leases. Null
   * rejects all.
   */
  choose(request: Request, free: readonly PooledResource<Resource>[]): PooledResource<Resource> | null;
  /** Whether an idle resource may be closed to make room for the request. */
  mayReplace(idle: PooledResource<Resource>, request: Request, waiting: readonly Request[]): boolean;
  /** Picks a lease to recall for a request without room; null for none. Default: none. */
  recall?(request: Request, leases: readonly Granted<Request>[]): Granted<Request> | null;
  /** Called before the next request is served. `overtaken`: earlier requests that could not be served. */
  onGrant(request: Request, details: { resource: Resource; lease: number; overtaken: readonly Request[] }): void;
  onOpened?(kind: ResourceKind<Resource>): void;
  onOpenFailed(kind: ResourceKind<Resource>, detail: string): void;
  /** Not called for leases that break because the pool closes. */
  onBroken(kind: ResourceKind<Resource>, detail: string): void;
  /** Whether an error of `open` applies to all requests of this kind, rather than to the first one only. */
  isLasting(error: unknown): boolean;
  closedError(): Error;
}

export interface LeasePoolOptions {
  /** Limit of local resources of all kinds. */
  mostLocal: number;
  /** Time until an idle resource is closed. Default: 5 minutes. */
  idleMs?: number | undefined;
}

const DEFAULT_IDLE_MS = 300_000;
/** After a lasting error, requests are rejected for this long before another attempt. */
const DAMAGED_FOR_MS = 30_000;

/**
 * Pool of leased resources. It opens them on demand, recalls them for more urgent requests, closes them when idle or
 * displaced, and replaces broken ones.
 */
export class LeasePool<Resource extends { close(): Promise<void> }, Request extends LeaseRequest<Resource>> {
  readonly #policy: LeasePolicy<Resource, Request>;
  readonly #options: LeasePoolOptions;
  readonly #entries = new Set<Entry<Resource, Request>>();
  /** In order of arrival. */
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

  /** Opens another resource in advance, unless there are `wanted` of its kind or there is no room. */
  warm(kind: ResourceKind<Resource>, wanted: number): void {
    const isWanted = this.#count((entry) => entry.kind.key === kind.key) < wanted;
    if (isWanted && !this.#closed.signal.aborted && this.#hasRoomFor(kind)) this.#open(kind);
  }

  /** Serves waiting requests. Call it when an input of the policy has changed. */
  serve(): void {
    while (this.#serveOne());
  }

  /** Rejects all waiting requests and closes all resources, including leased ones. */
  async close(): Promise<void> {
    this.#closed.abort(this.#policy.closedError());
    for (const { refuse } of [...this.#waiting.values()]) refuse(this.#closed.signal.reason);
    for (const entry of [...this.#entries]) this.#close(entry);
    // Resources that are opening see the signal, and are closed once open.
    await Promise.all([...this.#entries].map(({ opened }) => opened));
    await Promise.all(this.#closing);
  }

  /** Serves until one lease is granted, which may change the order of the rest. False if none is. */
  #serveOne(): boolean {
    const coming = this.#coming();
    const overtaken: Request[] = [];
    for (const request of this.#policy.inOrder([...this.#waiting.keys()])) {
      const { key } = request.kind;
      // A request may share only if no earlier one waits: sharing would keep the resource or the place from it.
      const chosen = this.#freeFor(request, { mayShare: overtaken.length === 0 });
      if (chosen !== null) {
        // One more resource would speed up the sharers.
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

  /** Resources by key that will be free soon. They are assigned to the earliest requests. */
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

  /** Closes an idle resource, which another one replaces. */
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
    // An exclusive request gains nothing from one of several leases.
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
      release: ({ broken }) => {
        entry.leases.delete(lease);
        // Its other leases break with it, which counts once.
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
    // `open` may throw synchronously.
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
    entry.idleTimer = setTimeout(() => this.#close(entry), this.#options.idleMs ?? DEFAULT_IDLE_MS).unref();
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
  /** Resolves when it is open or failed to open. */
  opened: Promise<void>;
  /** Key of the kind that replaces it. */
  replacedBy: string | null;
}

interface Waiter<Resource> {
  grant: (lease: Lease<Resource>) => void;
  refuse: (error: unknown) => void;
}
