import { EngineProcess } from '../../../speech/engine-process/engine-process.ts';

/** Starts an engine process, prints its process id and waits to be killed. */

const engine = await EngineProcess.start({
  entry: new URL('./scripted-engine.ts', import.meta.url),
  argument: { onLoad: 'none', onFinish: 'none' },
});
process.stdout.write(`${engine.pid}\n`);
setInterval(() => {}, 60_000);
