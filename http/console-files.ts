import { readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';

export interface ConsoleFile {
  content: Buffer;
  contentType: string;
  contentEncoding: 'br' | 'gzip' | null;
  etag: string;
}

/**
 * Reads a file of the built console, or its compressed copy. Null if it does not exist. Rejects paths with `..`, an
 * empty or hidden segment, or unusual characters, so that nothing outside the folder is read.
 * @param path below the folder, decoded, such as `assets/index-x1y2.js`
 */
export async function readConsoleFile(
  folder: string,
  { path, acceptEncoding = '' }: { path: string; acceptEncoding?: string | undefined },
): Promise<ConsoleFile | null> {
  const contentType = CONTENT_TYPES[extname(path)];
  if (contentType === undefined || !path.split('/').every((segment) => SEGMENT.test(segment))) return null;
  for (const { name, suffix } of ENCODINGS) {
    if (!accepts(acceptEncoding, name)) continue;
    const copy = await read(join(folder, `${path}${suffix}`));
    if (copy !== null) return { ...copy, contentType, contentEncoding: name };
  }
  const file = await read(join(folder, path));
  return file && { ...file, contentType, contentEncoding: null };
}

/** Whether the path may be a page of the console, which has its router in the browser. */
export function isConsolePage(path: string): boolean {
  if (path.startsWith('assets/')) return false;
  const segments = path.split('/');
  if (segments.some((segment) => segment === '.' || segment === '..')) return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: links of the console never contain them
  return !/[\u0000-\u001f\\]/.test(path) && extname(segments.at(-1)!) === '';
}

const SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,200}$/;

const ENCODINGS = [
  { name: 'br', suffix: '.br' },
  { name: 'gzip', suffix: '.gz' },
] as const;

/** File types of a build. Others are not served. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.woff': 'font/woff',
  '.wasm': 'application/wasm',
  '.wav': 'audio/wav',
  '.mp3': 'audio/mpeg',
  '.ogg': 'audio/ogg',
};

/** RFC 9110 §12.5.3. Ignores `*`. */
function accepts(acceptEncoding: string, name: string): boolean {
  return acceptEncoding.split(',').some((each) => {
    const [encoding = '', ...parameters] = each.split(';').map((part) => part.trim().toLowerCase());
    return encoding === name && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}

const MISSING: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG']);

async function read(path: string): Promise<{ content: Buffer; etag: string } | null> {
  try {
    const { size, mtimeMs } = await stat(path);
    const content = await readFile(path);
    return { content, etag: `"${size.toString(16)}-${Math.floor(mtimeMs).toString(16)}${extname(path)}"` };
  } catch (error) {
    if (MISSING.has((error as NodeJS.ErrnoException).code)) return null;
    throw error;
  }
}
