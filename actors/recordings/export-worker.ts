import { addNiceness } from '../../runtime/priority.ts';
import { serveThread } from '../../runtime/serve-thread.ts';
import { type ExportRequest, exportAudio } from './export-audio.ts';

export interface ExportThread {
  data: null;
  ready: null;
  calls: {
    /** Answers with the size of the target's plaintext. */
    export: { request: ExportRequest; answer: number };
  };
  reports: never;
  notices: never;
}

// Linux priorities are per thread: encoding yields to the threads that relay calls.
if (process.platform === 'linux') addNiceness(10);

await serveThread<ExportThread>(() => ({ ready: null, calls: { export: (request) => exportAudio(request) } }));
