import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serverFolder, tandem } from './command-line.ts';

const isRoot = process.getuid?.() === 0;
let folder: Awaited<ReturnType<typeof serverFolder>>;

beforeEach(async () => {
  folder = await serverFolder();
});

afterEach(() => folder[Symbol.asyncDispose]());

const download = (url: string, out: string) =>
  tandem(['recordings', 'download', 'order-1', '--out', out, '--url', url, '--key', 'sk_0123456789abcdef'], {
    cwd: folder.path,
  });

describe('tandem recordings download', () => {
  it('leaves an earlier file as it was if the connection is lost', async () => {
    await using server = await startPlaybackServer({ text: 'RIFF half', isBroken: true });
    await writeFile(join(folder.path, 'a.wav'), 'whole');
    for (const out of ['a.wav', 'new.wav']) {
      const { exitCode, stderr } = await download(server.url, out);
      const message = `tandem: the answer of ${server.url} was broken off: try again.\n`;
      expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: message });
    }
    expect(await readFile(join(folder.path, 'a.wav'), 'utf8')).toBe('whole');
    expect(await readdir(folder.path)).toEqual(['.env', 'a.wav']);
  });

  it('replaces an earlier file by the whole recording', async () => {
    await using server = await startPlaybackServer({ text: 'RIFF whole', isBroken: false });
    await writeFile(join(folder.path, 'a.wav'), 'a longer earlier file');
    const { exitCode, stderr } = await download(server.url, 'a.wav');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(await readFile(join(folder.path, 'a.wav'), 'utf8')).toBe('RIFF whole');
    expect(await readdir(folder.path)).toEqual(['.env', 'a.wav']);
  });

  it.each([false, true])('leaves a file with the ending .partial as it was (broken off: %s)', async (isBroken) => {
    await using server = await startPlaybackServer({ text: 'RIFF whole', isBroken });
    const other = join(folder.path, 'a.wav.partial');
    await writeFile(other, 'my own');
    await download(server.url, 'a.wav');
    expect(await readFile(other, 'utf8')).toBe('my own');
  });

  it.skipIf(isRoot)('leaves a write-protected file as it was (not as root, who may write all)', async () => {
    await using server = await startPlaybackServer({ text: 'RIFF whole', isBroken: false });
    await writeFile(join(folder.path, 'a.wav'), 'protected', { mode: 0o400 });
    const { exitCode, stderr } = await download(server.url, 'a.wav');
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringContaining('a.wav cannot be written: EACCES'),
    });
    expect(await readFile(join(folder.path, 'a.wav'), 'utf8')).toBe('protected');
  });

  it.skipIf(isRoot)('writes to a file in a read-only folder (not as root, who may write all)', async () => {
    await using server = await startPlaybackServer({ text: 'RIFF whole', isBroken: false });
    const readOnly = join(folder.path, 'read-only');
    await mkdir(readOnly);
    await writeFile(join(readOnly, 'a.wav'), 'a longer earlier file');
    await chmod(readOnly, 0o500);
    const { exitCode, stderr } = await download(server.url, 'read-only/a.wav');
    await chmod(readOnly, 0o700);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(await readFile(join(readOnly, 'a.wav'), 'utf8')).toBe('RIFF whole');
  });

  it('writes to a device', async () => {
    await using server = await startPlaybackServer({ text: 'RIFF whole', isBroken: false });
    const { exitCode, stderr } = await download(server.url, '/dev/null');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  });

  it('names a file that cannot be written', async () => {
    await using server = await startPlaybackServer({ text: 'RIFF whole', isBroken: false });
    const { exitCode, stderr } = await download(server.url, 'missing/a.wav');
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringContaining('missing/a.wav cannot be written: ENOENT'),
    });
  });
});

/** Mints a recording and plays this text for it; a broken server then loses the connection before the end. */
async function startPlaybackServer({ text, isBroken }: { text: string; isBroken: boolean }) {
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      if (request.method === 'POST') {
        const recording = { recording_id: 'r', recording_format: 'wav', playback_url: `${url}/play`, peaks_url: null };
        response.setHeader('content-type', 'application/json');
        return response.end(JSON.stringify({ success: true, data: { recording } }));
      }
      response.writeHead(200, { 'content-length': String(text.length + Number(isBroken)) });
      return response.write(text, () => (isBroken ? response.destroy() : response.end()));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
