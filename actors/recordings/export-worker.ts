import { setPriority } from 'node:os';
import { serveThread } from '../../runtime/serve-thread.ts';
import { type ExportRequest, exportAudio } from './export-audio.ts';

/** What crosses between the main thread and the thread that encodes recordings. */
export interface ExportThread {
  data: null;
  ready: null;
  calls: {
    /** Answered with the size of the target's plaintext. */
    export: { request: ExportRequest; answer: number };
  };
  reports: never;
  notices: never;
}

// On Linux a priority belongs to a thread: encoding yields to the threads that relay calls.
if (process.platform === 'linux') setPriority(0, 10);

await serveThread<ExportThread>(() => ({ ready: null, calls: { export: (request) => exportAudio(request) } }));
