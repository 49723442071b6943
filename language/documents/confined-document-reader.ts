import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { TandemError } from '../../machines/errors.ts';
import { runConfined } from '../../runtime/confined-process.ts';
import type { DocumentReader, DocumentSection, GivenDocument, ReadDocument } from './document-reader.ts';
import { watchMemory } from './memory-watch.ts';
import { readerCommand } from './reader-command.ts';
import { READING_LIMITS } from './reading-limits.ts';
import type { ReadingMessage } from './reading-messages.ts';

export interface DocumentReaderOptions {
  /** Limit of reading time. Default `READING_LIMITS.wallMs`. */
  wallMs?: number;
  /** Limit of memory. Default `READING_LIMITS.residentBytes`. */
  residentBytes?: number;
  /** Limit of processor time. Default `READING_LIMITS.cpuSeconds`. */
  cpuSeconds?: number;
  /** Returns the command that reads the document at a path. Default `readerCommand`. */
  command?: (path: string) => Promise<string[]>;
}

/** Reads each document in a sandboxed process of its own. */
export function createDocumentReader(options: DocumentReaderOptions = {}): DocumentReader {
  const { wallMs, residentBytes, cpuSeconds, command } = { ...READING_LIMITS, command: readerCommand, ...options };
  const closing = new AbortController();
  const running = new Set<Promise<ReadDocument>>();

  return {
    async read(document, signal) {
      const outOfTime = AbortSignal.timeout(wallMs);
      const either = AbortSignal.any([signal, closing.signal, outOfTime]);
      const reading = readConfined(document, { residentBytes, cpuSeconds, command, signal: either });
      running.add(reading);
      try {
        return await reading;
      } catch (error) {
        throw error === outOfTime.reason ? tooMuchWork() : error;
      } finally {
        running.delete(reading);
      }
    },

    async close() {
      closing.abort(new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.'));
      await Promise.allSettled(running);
    },
  };
}

interface Limits extends Required<Omit<DocumentReaderOptions, 'wallMs'>> {
  signal: AbortSignal;
}

async function readConfined(
  { path, name, mediaType }: GivenDocument,
  { residentBytes, cpuSeconds, command, signal }: Limits,
): Promise<ReadDocument> {
  await using account = await openUnnamed();
  using watch = watchMemory(residentBytes);
  let hasBegun = false;
  let complaint = '';
  const exitCode = await runConfined({
    command: [...(await command(path)), path, argument(name), argument(mediaType)],
    stdoutFd: account.fd,
    onStderr: (text) => {
      hasBegun ||= watch.begin(text);
      if (!hasBegun) complaint = (complaint + text).slice(0, 2000);
    },
    memoryBytes: READING_LIMITS.addressSpaceBytes,
    cpuSeconds,
    fileBytes: READING_LIMITS.outputBytes,
    signal: AbortSignal.any([signal, watch.exceeded]),
  }).catch((error: unknown) => {
    throw error === watch.exceeded.reason ? tooMuchWork() : error;
  });
  if (!hasBegun) throw new Error(`what reads documents cannot be run: ${exitCode} ${complaint}`);
  const read = await receive(account);
  signal.throwIfAborted();
  if (read !== null) return read;
  if (OUT_OF_LIMITS.includes(exitCode)) throw tooMuchWork();
  throw new TandemError('DOCUMENT_NOT_READABLE', 'Unsupported or damaged document. Send PDF, DOCX, XLSX or an image.');
}

/** Arguments cannot contain NUL. Keeps the end, where the extension is. */
function argument(text: string | null): string {
  return (text ?? '').replaceAll('\0', '').slice(-255);
}

/**
 * V8 out of memory (SIGABRT, SIGTRAP), killed by the kernel (SIGKILL), CPU limit (SIGXCPU), output too long (SIGXFSZ).
 */
const OUT_OF_LIMITS = [128 + 6, 128 + 5, 128 + 9, 128 + 24, 128 + 25];

/** Opens a file without a name. The kernel deletes it when the last process closes it or dies. */
async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `tandem-document-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600);
  await rm(path);
  return file;
}

/** Reads line by line, so that a long document does not block the thread. Null if the output is incomplete. */
async function receive(account: FileHandle): Promise<ReadDocument | null> {
  let document: Omit<ReadDocument, 'sections'> | null = null;
  const sections: DocumentSection[] = [];
  const input = account.createReadStream({ start: 0, autoClose: false, encoding: 'utf8' });
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    const message = parse(line);
    if (message === null) return null;
    if (message.type === 'refused') {
      throw new TandemError(message.code, message.message, { details: message.details });
    }
    if (message.type === 'broken') throw new Error(`what reads documents is broken: ${message.message}`);
    if (message.type === 'done') return document === null ? null : { ...document, sections };
    if (message.type === 'document') {
      const { type: _, ...rest } = message;
      document = rest;
    } else if (message.type === 'section') {
      sections.push({ heading: message.heading, page: message.page, text: '' });
    } else {
      const section = sections.at(-1);
      if (section !== undefined) section.text += message.text;
    }
  }
  return null;
}

/** Null for a line cut short when the process ended. */
function parse(line: string): ReadingMessage | null {
  try {
    return JSON.parse(line) as ReadingMessage;
  } catch {
    return null;
  }
}

function tooMuchWork(): TandemError {
  const message = 'Reading the document takes more time or memory than there is for one. Send it in parts.';
  return new TandemError('DOCUMENT_TOO_LARGE', message);
}
