import { runCommandLine } from './run.ts';

// `tandem call list | head -1`: whoever reads may stop reading.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
// Not only its code: what an interruption cut short may still hold a timer.
process.exit(await runCommandLine(process.argv.slice(2)));
