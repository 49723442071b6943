import { serveProcess } from '../../runtime/serve-process.ts';

serveProcess(async ({ messages, send }) => {
  for await (const { head } of messages) {
    if (head === 'environment') send(Object.keys(process.env));
    else if (head === 'flags') send(process.execArgv);
    else if (head === 'chatter') {
      process.stdout.write(`${'x'.repeat(10_000)}\n`);
      process.stderr.write('its last words\n', () => send('said'));
    } else if (head === 'exit') process.exit(3);
    else if (head === 'fail') throw new Error('as asked');
    else send(head as string);
  }
});
