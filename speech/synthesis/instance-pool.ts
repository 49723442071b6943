import { type Lease, LeasePool, type LeaseRequest } from '../../runtime/lease-pool.ts';
import { type SynthesisEngine, type Synthesizer, SynthesizerError } from '../synthesizer.ts';

export interface InstanceRequest {
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

/**
 * How often an idle instance is left to later clauses that want its model, rather than closed for one that wants
 * another: to load a model for every clause would serve nobody.
 */
const MOST_OVERTAKEN = 3;
/** The next clause of a text that is heard already has waited long enough by then, and is as urgent as beginnings. */
const PATIENCE_MS = 2000;

interface Request extends InstanceRequest, LeaseRequest<Synthesizer> {
  readonly askedAtMs: number;
  overtaken: number;
}

/** Instances of engines, leased for a clause in the order of asking; beginnings of texts go first, for a while. */
export class InstancePool {
  readonly #pool: LeasePool<Synthesizer, Request>;

  constructor({ processes, idleMs, onBroken = () => {} }: InstancePoolOptions) {
    const report = ({ key: model }: { key: string }, detail: string) => onBroken({ model, detail });
    this.#pool = new LeasePool<Synthesizer, Request>(
      {
        inOrder: (waiting) => waiting.toSorted((a, b) => Number(isUrgent(b)) - Number(isUrgent(a))),
        choose: ({ isFresh }, idle) => idle.find(({ lastLease }) => !isFresh || lastLease === 0) ?? null,
        mayReplace({ kind: { key } }, { kind, isFresh, overtaken }, waiting) {
          if (key === kind.key) return isFresh;
          if (overtaken >= MOST_OVERTAKEN) return true;
          return !waiting.some((other) => !other.isFresh && other.kind.key === key);
        },
        onGrant(_, { overtaken }) {
          for (const request of overtaken) request.overtaken += 1;
        },
        onOpenFailed: report,
        onBroken: report,
        isLasting: (error) => error instanceof SynthesizerError && error.code === 'model',
        keepsLast: true,
        closedError: () => new SynthesizerError('crashed', 'speech synthesis was closed'),
      },
      { mostLocal: processes, idleMs },
    );
  }

  /** @throws SynthesizerError when none can be started; the signal's reason */
  async lease(request: InstanceRequest): Promise<Lease<Synthesizer>> {
    const { engine, model } = request;
    const kind = {
      key: `${engine.name}/${model}`,
      maker: engine,
      // Upstream servers have their own cores.
      isLocal: engine.name !== 'openai',
      open: async (signal: AbortSignal) => await engine.start({ model, signal }),
    };
    return await this.#pool.lease({ ...request, kind, askedAtMs: performance.now(), overtaken: 0 });
  }

  /** Refuses all who wait, and ends instances that speak. */
  async close(): Promise<void> {
    await this.#pool.close();
  }
}

function isUrgent({ isFirst, askedAtMs }: Request): boolean {
  return isFirst || askedAtMs <= performance.now() - PATIENCE_MS;
}
