import { writeSync } from 'node:fs';
import type { TandemError } from '../../machines/errors.ts';
import { readDocument } from './read-document.ts';
import { CHARACTERS_PER_MESSAGE, type ReadingMessage } from './reading-messages.ts';
import { isOurs, refusalOf } from './reading-refusal.ts';

/**
 * The program that reads one document, given as arguments its path, its name and its media type, the last two empty if
 * there are none. It tells what it has read on standard output, and its process id on standard error.
 */
const STDOUT_FD = 1;
const STDERR_FD = 2;

beSilent();
// Thrown where nobody waits, as tesseract does when there is no memory left for a picture.
process.on('uncaughtException', giveUp);
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
  giveUp(error);
}
process.exit(0);

function giveUp(error: unknown): never {
  tell(isOurs(error) ? { type: 'broken', message: String(error) } : refused(refusalOf(error)));
  process.exit(0);
}

function refused({ code, message, details }: TandemError): ReadingMessage {
  return { type: 'refused', code, message, details };
}

function tell(message: ReadingMessage): void {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let written = 0; written < bytes.length; ) written += writeSync(STDOUT_FD, bytes, written);
}

/** Libraries say things on the console, which is where the account goes. */
function beSilent(): void {
  process.stdout.write = () => true;
  process.stderr.write = () => true;
}
