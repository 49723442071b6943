import type { JobQueue, Jobs } from '../../storage/jobs.ts';

/** A queue of memories in this process: a job is handled in a later turn, unless the test lets none in or loses them. */
export class MemoryQueue implements Pick<Jobs, 'open'> {
  readonly added: string[] = [];
  /** `lost`: taken and never handled. `refusing`: its server is away. `closed`: it cannot be opened. */
  state: 'working' | 'lost' | 'refusing' | 'closed' = 'working';
  #handler: ((id: string) => Promise<void>) | null = null;

  /** As if a job came for it; resolves when that is over. */
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
