import type { SipServerOptions } from './sip-server.ts';

export type WorkerData = SipServerOptions;

export type ToWorker = { type: 'close' } | { type: 'dump'; id: number };

export type FromWorker =
  | { type: 'ready'; controlPort: number; sipPort: number }
  /** The sockets could not be opened. */
  | { type: 'failed'; message: string; code: string | null }
  | { type: 'fault'; error: Error }
  | { type: 'dumped'; id: number; state: unknown };
