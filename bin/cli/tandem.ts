import { runCommandLine } from './run.ts';

// `tandem call list | head -1` closes the pipe early.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
// Explicit, because an unfinished request would delay the exit.
process.exit(await runCommandLine(process.argv.slice(2), process));
