import { createLlamaEngine } from '../../../language/engines/llama/llama-engine.ts';

/** Starts a model process, prints its process id and waits to be killed. */

const engine = createLlamaEngine({
  modelPath: process.argv[2] ?? '',
  entry: new URL('./scripted-child.ts', import.meta.url),
});
await engine.models(new AbortController().signal);
process.stdout.write(`${engine.pid}\n`);
setInterval(() => {}, 60_000);
