import { runCommandLine } from './cli/run.ts';

process.exit(await runCommandLine(['wallet', 'top-up', ...process.argv.slice(2)]));
