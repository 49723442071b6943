import { type DemoResult, runDemo } from '../../demo/demo.ts';
import { type Command, defineAction, UsageError } from '../command.ts';

export const demoCommand: Command = {
  action: defineAction({
    summary:
      'Rings two softphones over real SIP and RTP, bridges and records them, and checks what each of them heard.',
    options: {
      keep: { about: 'keep the server and the phones up afterwards (Ctrl-C ends)' },
      talk: { value: 'SECONDS', about: 'how long they talk, 2 to 30 (default 6)' },
    },
    async run({ values, terminal }) {
      const talkSeconds = Number(values.talk ?? 6);
      if (!(talkSeconds >= 2 && talkSeconds <= 30)) throw new UsageError('--talk takes 2 to 30 seconds');
      let result: DemoResult | null = null;
      const exitCode = await runDemo({
        terminal,
        keep: values.keep === true,
        talkSeconds,
        onResult: (measured) => {
          result = measured;
          // It goes on, and whoever reads wants the address.
          if (values.keep) terminal.publish(measured);
        },
      });
      if (exitCode === 0) return { data: result };
      const message =
        exitCode === 130 ? 'The demo was interrupted.' : 'Something the demo measured is not as it should be.';
      return { data: result, failure: { code: exitCode === 130 ? 'INTERRUPTED' : 'DEMO_FAILED', message }, exitCode };
    },
  }),
  notes: 'Everything runs embedded, on a data folder and ports of its own; the recording is kept in .data/demo.',
};
