import { describeConfig } from '../../../config.ts';
import { createLogger } from '../../../logging.ts';
import { serve } from '../../../main.ts';
import { type Command, defineAction } from '../command.ts';
import { readSettings } from '../settings.ts';

export const serveCommand: Command = {
  action: defineAction({
    summary: 'Run the server until SIGTERM or Ctrl-C. Live calls may finish; a second signal ends them.',
    async run({ host, terminal }) {
      await serve({
        config: readSettings(host),
        ...(terminal.json && {
          // Standard output is reserved for the one document, which is printed when the server is ready.
          createLogger: ({ level }) => createLogger({ level, destination: host.stderr }),
          onReady: ({ url, sip, workspaceId, mintedApiKey }) =>
            terminal.publish({ url, sip, workspace_id: workspaceId, api_key: mintedApiKey }),
        }),
      });
      return { data: null };
    },
  }),
  notes: describeConfig().split('\n').slice(4).join('\n'),
};
