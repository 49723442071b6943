import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { readDocument } from './read-document.ts';
import { CHARACTERS_PER_MESSAGE, type ReadingMessage } from './reading-messages.ts';
import { refusalOf } from './reading-refusal.ts';

/**
 * The program that reads one document, given as arguments its path, its name and its media type, the last two empty if
 * there are none. It tells what it has read on standard output, and its process id on standard error.
 */
const STDOUT_FD = 1;
const STDERR_FD = 2;

closeDoors();
// Whoever started the shell around this knows only that one's.
writeSync(STDERR_FD, `${process.pid}\n`);
const [path = '', name = '', mediaType = ''] = process.argv.slice(2);
try {
  const { sections, ...document } = await readDocument({ path, name: name || null, mediaType: mediaType || null });
  tell({ type: 'document', ...document });
  for (const { heading, page, text } of sections) {
    tell({ type: 'section', heading, page });
    for (let at = 0; at < text.length; at += CHARACTERS_PER_MESSAGE) {
      tell({ type: 'text', text: text.slice(at, at + CHARACTERS_PER_MESSAGE) });
    }
  }
  tell({ type: 'done' });
} catch (error) {
  const { code, message, details } = refusalOf(error);
  tell({ type: 'refused', code, message, details });
}
process.exit(0);

function tell(message: ReadingMessage): void {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let written = 0; written < bytes.length; ) written += writeSync(STDOUT_FD, bytes, written);
}

/** Libraries say things on the console, and have ways to fetch what a document refers to. Neither is wanted. */
function closeDoors(): void {
  process.stdout.write = () => true;
  process.stderr.write = () => true;
  Socket.prototype.connect = () => {
    throw new Error('There is no network here.');
  };
}
