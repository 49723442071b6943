import type { CommandHost } from './host.ts';

/** Reads all of standard input, trimmed. */
export async function readInput({ stdin }: CommandHost): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8').trim();
}
