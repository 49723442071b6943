import type { JobQueue, Jobs } from '../../storage/jobs.ts';

/** An in-process queue that handles jobs in a later turn, and can reject or lose them. */
export class MemoryQueue implements Pick<Jobs, 'open'> {
  readonly added: string[] = [];
  /** `lost`: accepts and never handles jobs. `refusing`: rejects them. `closed`: cannot open. */
  state: 'working' | 'lost' | 'refusing' | 'closed' = 'working';
  #handler: ((id: string) => Promise<void>) | null = null;

  /** Simulates a job for the memory, and waits for its end. */
  async deliver(id: string): Promise<void> {
    await this.#handler?.(id);
  }

  async open(): Promise<JobQueue> {
    if (this.state === 'closed') throw new Error('the queue cannot be opened');
    return {
      add: async (id, { delayMs }) => {
        if (this.state === 'refusing') throw new Error('the queue is away');
        this.added.push(id);
        if (this.state === 'working' && delayMs === 0) setImmediate(() => void this.#handler?.(id));
      },
      work: async (handler) => {
        this.#handler = handler;
        return {
          close: async () => {
            this.#handler = null;
          },
        };
      },
    };
  }
}
