import { type Lease, LeasePool, type LeaseRequest } from '../../runtime/lease-pool.ts';
import { type SynthesisEngine, type Synthesizer, SynthesizerError } from '../synthesizer.ts';

export interface InstanceRequest {
  engine: SynthesisEngine;
  model: string;
  /** Requires an instance that has not spoken yet: others may share the fault of the one that died. */
  isFresh: boolean;
  /** The first clause of its text. It takes precedence for a while, because its listener has received nothing yet. */
  isFirst: boolean;
  signal: AbortSignal;
}

export interface InstancePoolOptions {
  /** Limit of local instances, over all models. */
  processes: number;
  /** Idle time before an instance closes. Default 15 minutes. */
  idleMs?: number;
  /** Called when an instance broke or could not start. */
  onBroken?: (instance: { model: string; detail: string }) => void;
}

/** An instance takes 100 MB, and starting one takes half a second. */
const IDLE_MS = 15 * 60_000;
/**
 * How often later clauses may reuse an idle instance before it closes for a clause of another model. Loading a model
 * for every clause would be slower for all.
 */
const MOST_OVERTAKEN = 3;
/** A later clause that has waited this long is as urgent as first ones. */
const PATIENCE_MS = 2000;

interface Request extends InstanceRequest, LeaseRequest<Synthesizer> {
  readonly askedAtMs: number;
  overtaken: number;
}

/** Leases engine instances per clause, in order; first clauses of texts take precedence for a while. */
export class InstancePool {
  readonly #pool: LeasePool<Synthesizer, Request>;

  constructor({ processes, idleMs = IDLE_MS, onBroken = () => {} }: InstancePoolOptions) {
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
        closedError: () => new SynthesizerError('crashed', 'speech synthesis was closed'),
      },
      { mostLocal: processes, idleMs },
    );
  }

  /** @throws SynthesizerError if none can be started; the signal's reason */
  async lease(request: InstanceRequest): Promise<Lease<Synthesizer>> {
    const { engine, model } = request;
    const kind = {
      key: `${engine.name}/${model}`,
      maker: engine,
      // Upstream servers do not use our cores.
      isLocal: engine.name !== 'openai',
      open: async (signal: AbortSignal) => await engine.start({ model, signal }),
    };
    return await this.#pool.lease({ ...request, kind, askedAtMs: performance.now(), overtaken: 0 });
  }

  /** Rejects waiting requests and closes busy instances. */
  async close(): Promise<void> {
    await this.#pool.close();
  }
}

function isUrgent({ isFirst, askedAtMs }: Request): boolean {
  return isFirst || askedAtMs <= performance.now() - PATIENCE_MS;
}
