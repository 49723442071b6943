import { MOST_SENTENCES } from '../../demo/conversation.ts';
import { type DemoResult, runDemo } from '../../demo/demo.ts';
import { type Command, defineAction, UsageError } from '../command.ts';

export const demoCommand: Command = {
  action: defineAction({
    summary:
      'Place a call between two softphones over real SIP and RTP, record and transcribe it, and check the results.',
    options: {
      keep: { about: 'keep the server and the softphones running (Ctrl-C ends)' },
      encrypt: { about: 'encrypt the media of both legs with SRTP' },
      sentences: {
        value: 'N',
        about: `number of sentences spoken, 2 to ${MOST_SENTENCES} (default ${MOST_SENTENCES})`,
      },
    },
    async run({ values, terminal }) {
      const sentences = Number(values.sentences ?? MOST_SENTENCES);
      if (!Number.isInteger(sentences) || sentences < 2 || sentences > MOST_SENTENCES) {
        throw new UsageError(`--sentences takes 2 to ${MOST_SENTENCES}`);
      }
      let result: DemoResult | null = null;
      const exitCode = await runDemo({
        terminal,
        keep: values.keep === true,
        encrypt: values.encrypt === true,
        sentences,
        onResult: (measured) => {
          result = measured;
          // The demo keeps running, so the address is published now.
          if (values.keep) terminal.publish(measured);
        },
      });
      if (exitCode === 0) return { data: result };
      const message =
        exitCode === 130 ? 'The demo was interrupted.' : 'Something the demo measured is not as it should be.';
      return { data: result, failure: { code: exitCode === 130 ? 'INTERRUPTED' : 'DEMO_FAILED', message }, exitCode };
    },
  }),
  notes:
    'Everything runs embedded, with its own data folder and ports. The recording stays in .data/demo. Only your STT_* and MODELS_DIR settings apply.',
};
