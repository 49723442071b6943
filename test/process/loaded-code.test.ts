import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import type { PublicTranscript } from '../../actors/stt/transcriber.ts';
import { unusedFiles } from '../../bin/install/remove-unused-files.ts';
import { modulesInProcess, packagesLoadedBy, refusedLicences } from '../packaging/package-licences.ts';
import { ROOT } from '../root.ts';
import { DATA } from '../speech/spoken.ts';
import type { LoadedCode } from './loaded-code-recorder.ts';
import { cleanUp, dataFolder, fund, type Ready, startReady, withDatabase } from './ready-server.ts';

afterEach(cleanUp);

describe('server after synthesis, recognition and memory', () => {
  it('contains only code with a permitted licence, in all threads', async () => {
    const dataDir = await dataFolder({ embedsPostgres: true });
    const log = join(dataDir, 'loaded-code.jsonl');
    const server = await startReady(dataDir, {
      NODE_OPTIONS: `--import ${join(import.meta.dirname, 'loaded-code-recorder.ts')}`,
      LOADED_CODE_LOG: log,
    });
    await withDatabase(dataDir, (sql) => fund(sql, server.workspaceId));
    await speak(server, 'MP3');
    await speak(server, 'OGG_OPUS');
    expect((await transcribe(server)).text).not.toBe('');
    await server.api.post('/memory/ingest', { text: 'The violet lantern hangs at the gate.' });

    const pid = server.server.child.pid!;
    const loaded = await loadedBy(pid, log);
    const libraries = await librariesOf(pid);
    const files = loaded.flatMap(({ url }) =>
      url === null ? [] : [url.startsWith('file:') ? fileURLToPath(url) : url],
    );
    const packages = new Set([...files, ...libraries].flatMap((file) => packageFolderOf(file)));

    expect(refusedLicences(packages)).toEqual([]);
    expect(libraries.filter((file) => packageFolderOf(file).length === 0 && !SYSTEM_LIBRARY.test(file))).toEqual([]);
    // The static analysis of `packaging/` must predict everything.
    const foreseen = packagesLoadedBy(modulesInProcess('main.ts'));
    expect([...packages].filter((folder) => !foreseen.has(folder))).toEqual([]);
    expect(files).toContain(join(ROOT, 'media/listening/worker.ts'));
    // Production installations remove these.
    const unused = new Set([...unusedFiles(MODULES)].map((file) => join(MODULES, file)));
    expect([...files, ...libraries].filter((file) => unused.has(file))).toEqual([]);
    // Traces must cost nothing without a collector.
    expect(files.filter((file) => file.includes('@opentelemetry/sdk-trace'))).toEqual([]);
    const assembled = loaded
      .filter(({ kind, url }) => kind === 'wasm' && url !== TYPE_STRIPPER)
      .map(({ url }) => packageOrFile(url));
    expect(new Set(assembled)).toEqual(
      new Set([
        'runtime/assembled-wasm.ts',
        ...['@echogarden/rnnoise-wasm', 'libopus-wasm', 'wasm-media-encoders'].map((name) => `node_modules/${name}`),
      ]),
    );
  });
});

const MODULES = join(ROOT, 'node_modules');

/** Part of Node. It compiles WebAssembly for the first module that is missing from the compile cache. */
const TYPE_STRIPPER = '/deps/amaro/dist/index';

/** From the C and C++ runtime, which every build of Node needs. */
const SYSTEM_LIBRARY = /\/(ld-linux|lib(c|m|dl|rt|pthread|atomic|gcc_s|stdc\+\+))[-.\w]*\.so/;

async function speak({ api }: Ready, audioEncoding: string): Promise<void> {
  const body = { text: 'Bring seven lanterns.', audio_encoding: audioEncoding };
  const lines: { type: string }[] = [];
  for await (const line of api.lines<{ type: string }>('/tts-stream', body)) lines.push(line);
  expect(lines.at(-1)?.type).toBe('complete');
}

async function transcribe({ api }: Ready): Promise<PublicTranscript> {
  const filePath = join(DATA, 'cards/001.wav');
  return await api.upload<PublicTranscript>('/stt', { filePath, fields: [], onProgress: () => {} });
}

async function loadedBy(pid: number, log: string): Promise<LoadedCode[]> {
  const lines = (await readFile(log, 'utf8')).trim().split('\n');
  return lines.map((line) => JSON.parse(line) as LoadedCode).filter((entry) => entry.pid === pid);
}

/** Native libraries in a process with its threads, according to Linux. */
async function librariesOf(pid: number): Promise<string[]> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  const files = maps.split('\n').map((line) => line.split(/\s+/).slice(5).join(' '));
  return [...new Set(files)].filter((file) => /\.(so|node)\b/.test(file));
}

/** The innermost package of a file, or an empty list for our own. */
function packageFolderOf(file: string): string[] {
  const inside = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1];
  return inside === undefined ? [] : [inside];
}

function packageOrFile(url: string | null): string {
  const file = url?.startsWith('file:') ? fileURLToPath(url) : (url ?? 'no file');
  return (packageFolderOf(file)[0] ?? file).replace(`${ROOT}/`, '');
}
