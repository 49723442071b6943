import { writeSync } from 'node:fs';
import type { TandemError } from '../../machines/errors.ts';
import { readDocument } from './read-document.ts';
import { CHARACTERS_PER_MESSAGE, type ReadingMessage } from './reading-messages.ts';
import { isOurs, refusalOf } from './reading-refusal.ts';

/**
 * Entry of the process that reads one document. Arguments: path, name and media type; the last two are empty if
 * unknown. Writes messages to standard output and its process id to standard error.
 */
const STDOUT_FD = 1;
const STDERR_FD = 2;

beSilent();
// For errors thrown outside of any promise, as tesseract does when it runs out of memory.
process.on('uncaughtException', giveUp);
// The parent only knows the id of the shell around this process.
writeSync(STDERR_FD, `${process.pid}\n`);
const [path = '', name = '', mediaType = ''] = process.argv.slice(2);
try {
  const { sections, ...document } = await readDocument({ path, name: name || null, mediaType: mediaType || null });
  writeMessage({ type: 'document', ...document });
  for (const { heading, page, text } of sections) {
    writeMessage({ type: 'section', heading, page });
    for (let at = 0; at < text.length; at += CHARACTERS_PER_MESSAGE) {
      writeMessage({ type: 'text', text: text.slice(at, at + CHARACTERS_PER_MESSAGE) });
    }
  }
  writeMessage({ type: 'done' });
} catch (error) {
  giveUp(error);
}
process.exit(0);

function giveUp(error: unknown): never {
  writeMessage(isOurs(error) ? { type: 'broken', message: String(error) } : refused(refusalOf(error)));
  process.exit(0);
}

function refused({ code, message, details }: TandemError): ReadingMessage {
  return { type: 'refused', code, message, details };
}

function writeMessage(message: ReadingMessage): void {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let written = 0; written < bytes.length; ) written += writeSync(STDOUT_FD, bytes, written);
}

/** Libraries write to the console, which would mix with the messages. */
function beSilent(): void {
  process.stdout.write = () => true;
  process.stderr.write = () => true;
}
