import { runCommandLine } from './cli/run.ts';

process.exit(await runCommandLine(['demo', ...process.argv.slice(2)]));
