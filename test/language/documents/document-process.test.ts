import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDocumentReader } from '../../../language/documents/confined-document-reader.ts';
import { readerCommand } from '../../../language/documents/reader-command.ts';
import { isOurs } from '../../../language/documents/reading-refusal.ts';
import { TandemError } from '../../../machines/errors.ts';
import { eventually } from '../../eventually.ts';
import { pdfWith, writtenLines } from './pdfs.ts';
import { drawnText, pngOf } from './pictures.ts';
import { codeOf } from './reading.ts';

let folder: string;
/** A document whose recognition takes seconds. */
let longWork: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-document-process-'));
  longWork = join(folder, 'long-work.png');
  const lines = Array<string>(60).fill('THE TRAIN IS LATE AND THE ROUTE IS CLOSED '.repeat(2));
  await writeFile(longWork, pngOf(drawnText(lines)));
});
afterAll(() => rm(folder, { recursive: true }));

/** Process ids whose command line contains the path. */
async function readersOf(path: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return pids.filter((_, index) => commands[index]!.includes(`\0${path}\0`)).map(Number);
}

async function named(name: string, content: Buffer | string) {
  const path = join(folder, name);
  await writeFile(path, content);
  return { path, name, mediaType: null };
}

it('kills the process when the request is cancelled and cleans up', async () => {
  const reader = createDocumentReader();
  const controller = new AbortController();
  const reading = reader.read({ path: longWork, name: null, mediaType: null }, controller.signal);
  await eventually(async () => expect(await readersOf(longWork)).not.toEqual([]));
  controller.abort(new TandemError('CLIENT_CANCELLED', 'gone'));
  expect(await codeOf(reading)).toBe('CLIENT_CANCELLED');
  await eventually(async () => expect(await readersOf(longWork)).toEqual([]));
  expect((await readdir(tmpdir())).filter((name) => name.startsWith('tandem-document-') && name.length > 50)).toEqual(
    [],
  );
});

it('kills the process when the reader closes', async () => {
  const reader = createDocumentReader();
  const reading = codeOf(reader.read({ path: longWork, name: null, mediaType: null }, new AbortController().signal));
  await eventually(async () => expect(await readersOf(longWork)).not.toEqual([]));
  await reader.close();
  expect(await reading).toBe('SHUTTING_DOWN');
  await eventually(async () => expect(await readersOf(longWork)).toEqual([]));
});

it('kills the process after the time limit and rejects the document as too large', async () => {
  const reader = createDocumentReader({ wallMs: 50 });
  const reading = reader.read({ path: longWork, name: null, mediaType: null }, new AbortController().signal);
  expect(await codeOf(reading)).toBe('DOCUMENT_TOO_LARGE');
  await eventually(async () => expect(await readersOf(longWork)).toEqual([]));
});

it('kills the process above the memory limit and rejects the document as too large', async () => {
  const reader = createDocumentReader({ residentBytes: 2 ** 26 });
  const reading = reader.read({ path: longWork, name: null, mediaType: null }, new AbortController().signal);
  expect(await codeOf(reading)).toBe('DOCUMENT_TOO_LARGE');
  await eventually(async () => expect(await readersOf(longWork)).toEqual([]));
});

it('ends the process when its owner is killed', async () => {
  const module = fileURLToPath(new URL('../../../language/documents/confined-document-reader.ts', import.meta.url));
  const code = `
    import { createDocumentReader } from ${JSON.stringify(module)};
    const document = { path: ${JSON.stringify(longWork)}, name: null, mediaType: null };
    await createDocumentReader().read(document, new AbortController().signal);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'ignore' });
  await eventually(async () => expect(await readersOf(longWork)).not.toEqual([]));
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  await eventually(async () => expect(await readersOf(longWork)).toEqual([]));
});

it('treats document names as data, never as options or paths', async () => {
  const reader = createDocumentReader();
  const { signal } = new AbortController();
  for (const name of [
    '--eval=process.exit(3)',
    '../../etc/passwd',
    "'; touch x; '",
    'a\nb\0.md',
    'x'.repeat(200_000),
  ]) {
    const document = { ...(await named('plain', 'Hello.')), name, mediaType: '--version' };
    expect((await reader.read(document, signal)).sections).toEqual([{ heading: null, page: null, text: 'Hello.' }]);
  }
});

it('reads text after U+2028, which is not a line break of the protocol', async () => {
  const reader = createDocumentReader();
  const text = `${'\u{1f642}'.repeat(40_000)}\u2028end of it`;
  const read = await reader.read(await named('long.txt', text), new AbortController().signal);
  expect(read.sections[0]!.text).toBe(`${'\u{1f642}'.repeat(40_000)}\nend of it`);
});

it('never opens a URL in a document', async () => {
  let connections = 0;
  const server = createServer(() => {
    connections += 1;
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const url = `http://127.0.0.1:${port}/x`;
  const catalogue = `/OpenAction << /S /URI /URI (${url}) >> /AcroForm << /XFA (${url}) >>`;
  const bytes = pdfWith({ pages: [writtenLines([url])], catalogue });
  const read = await createDocumentReader().read(await named('a.pdf', bytes), new AbortController().signal);
  expect(read.sections[0]!.text).toBe(url);
  expect(connections).toBe(0);
  server.close();
});

it('confines the process to reading the document and the program', async () => {
  const probe = join(folder, 'probe.mjs');
  const elsewhere = join(folder, 'elsewhere');
  await writeFile(elsewhere, 'secret');
  await writeFile(
    probe,
    `import { readFileSync, writeFileSync } from 'node:fs';
    import { execFileSync } from 'node:child_process';
    const attempts = {
      readsItself: () => readFileSync(${JSON.stringify(probe)}),
      readsElsewhere: () => readFileSync(${JSON.stringify(elsewhere)}),
      writes: () => writeFileSync(${JSON.stringify(probe)}, ''),
      starts: () => execFileSync('/bin/true'),
      makesCode: () => eval('1'),
    };
    const done = Object.entries(attempts).filter(([, attempt]) => { try { attempt(); return true } catch { return false } });
    process.stdout.write(JSON.stringify(done.map(([name]) => name)));`,
  );
  const [program = '', ...flags] = (await readerCommand(probe)).slice(0, -1);
  const { stdout } = await promisify(execFile)(program, [...flags, probe]);
  expect(JSON.parse(stdout)).toEqual(['readsItself']);
});

it('blocks the network in every thread', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const probe = join(folder, 'network.mjs');
  await writeFile(
    probe,
    `import { createSocket } from 'node:dgram';
    import { lookup, promises, Resolver } from 'node:dns';
    import { get } from 'node:http';
    import { connect, createServer } from 'node:net';
    import { isMainThread, Worker } from 'node:worker_threads';
    const settled = (begin) => new Promise(begin).then(() => true, () => false);
    const emitted = (make, event) => settled((done, failed) => make().once(event, done).once('error', failed));
    const attempts = {
      connects: () => emitted(() => connect(${port}, '127.0.0.1'), 'connect'),
      asks: () => emitted(() => get('http://127.0.0.1:${port}'), 'response'),
      fetches: () => fetch('http://127.0.0.1:${port}').then(() => true, () => false),
      listens: () => emitted(() => createServer().listen(0), 'listening'),
      sends: () => settled((done, failed) => createSocket('udp4').send('x', ${port}, '127.0.0.1', (e) => e ? failed(e) : done())),
      looksUp: () => settled((done, failed) => lookup('localhost', (e) => e ? failed(e) : done())),
      looksUpLater: async () => (await promises.lookup('localhost'), true),
      resolves: () => settled((done, failed) => new Resolver().resolve4('localhost', (e) => e ? failed(e) : done())),
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      const isDone = await (async () => attempt())().catch(() => false);
      if (isDone) process.stdout.write(name + (isMainThread ? ' ' : '-in-thread '));
    }
    if (isMainThread) new Worker(new URL(import.meta.url)).on('error', () => process.stdout.write('no thread'))
      .on('exit', () => { process.stdout.write('end'); process.exit(0); });`,
  );
  const [program = '', ...flags] = (await readerCommand(probe)).slice(0, -1);
  const { stdout } = await promisify(execFile)(program, [...flags, probe], { timeout: 20_000 });
  expect(stdout).toBe('end');
  expect(connections).toBe(0);
  server.close();
});

it('kills the process above its CPU limit and rejects the document as too large', async () => {
  const reader = createDocumentReader({ cpuSeconds: 1 });
  const reading = reader.read({ path: longWork, name: null, mediaType: null }, new AbortController().signal);
  expect(await codeOf(reading)).toBe('DOCUMENT_TOO_LARGE');
  await eventually(async () => expect(await readersOf(longWork)).toEqual([]));
});

it('reports a broken process as an internal error, not as a bad document', async () => {
  const document = await named('sound.txt', 'Sound.');
  const broken = { type: 'broken', message: 'tesseract does not begin' };
  const reportsItself = `process.stderr.write(process.pid + '\\n'); console.log(${JSON.stringify(JSON.stringify(broken))});`;
  for (const [program, said] of [
    ['process.exit(1)', /cannot be run: 1/],
    ['process.abort()', /cannot be run: 134/],
    ['import("node:none")', /cannot be run: 1 .*node:none/s],
    [reportsItself, /tesseract does not begin/],
  ] as const) {
    const reader = createDocumentReader({ command: async () => [process.execPath, '-e', program, '--'] });
    const failure = await reader.read(document, new AbortController().signal).catch((error: unknown) => error);
    expect(failure).not.toBeInstanceOf(TandemError);
    expect(String(failure)).toMatch(said);
  }
  expect(isOurs(Object.assign(new Error('gone'), { code: 'ERR_MODULE_NOT_FOUND' }))).toBe(true);
  expect(isOurs(new Error('Invalid PDF structure.'))).toBe(false);
});

it('rejects a document that exhausts memory outside of any pending call', async () => {
  const late = `const timer = setInterval(() => {
    if (process.listenerCount('uncaughtException') === 0) return;
    clearInterval(timer);
    throw new RangeError('Array buffer allocation failed');
  }, 1);`;
  const reader = createDocumentReader({
    async command(path) {
      const [program = '', ...rest] = await readerCommand(path);
      return [program, `--import=data:text/javascript,${encodeURIComponent(late)}`, ...rest];
    },
  });
  const reading = reader.read({ path: longWork, name: null, mediaType: null }, new AbortController().signal);
  await expect(reading).rejects.toMatchObject({ code: 'DOCUMENT_TOO_LARGE', message: expect.stringMatching(/memory/) });
});
