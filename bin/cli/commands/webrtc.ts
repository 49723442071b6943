import { installWorker } from '../../../media/webrtc/install-worker.ts';
import { type Command, CommandError, defineAction } from '../command.ts';

const DOWNLOAD_TIMEOUT_MS = 300_000;

const install = defineAction({
  summary: 'Download the WebRTC worker for this machine. The server uses it from its next start.',
  async run({ terminal }) {
    terminal.progress('downloading ...');
    try {
      const path = await installWorker({ timeoutMs: DOWNLOAD_TIMEOUT_MS });
      terminal.progress('');
      return { data: { path }, text: `Installed ${path}. Restart the server to let browsers take part in calls.` };
    } catch (error) {
      terminal.progress('');
      throw new CommandError('NOT_INSTALLED', `${(error as Error).message}.`, { cause: error });
    }
  },
});

export const webrtcCommand: Command = {
  actions: { install },
  notes: 'Set MEDIASOUP_WORKER_BIN for the server to use a worker that you built yourself.',
};
