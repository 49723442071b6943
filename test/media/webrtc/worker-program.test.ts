import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { installWorker } from '../../../media/webrtc/install-worker.ts';
import { findWorker } from '../../../media/webrtc/worker-binary.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tandem-webrtc-'));
});
afterEach(() => rmSync(home, { recursive: true }));

/** A fake mediasoup package with local releases, whose program exits with `exitCode`. */
async function release({ exitCode = 41, status = 200 }: { exitCode?: number; status?: number } = {}) {
  const program = join(home, 'mediasoup-worker');
  writeFileSync(program, `#!/bin/sh\nexit ${exitCode}\n`);
  chmodSync(program, 0o755);
  const archive = spawnSync('tar', ['-cz', '-C', home, 'mediasoup-worker']).stdout;
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(status).end(archive);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = join(home, 'package');
  mkdirSync(folder);
  const url = `git+http://127.0.0.1:${(server.address() as AddressInfo).port}/mediasoup.git`;
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ version: '3.1.2', repository: { url } }));
  return { folder, asked, [Symbol.dispose]: () => void server.close() };
}

describe('mediasoup worker program', () => {
  it('downloads for this platform, passes a check and lands where mediasoup expects it', async () => {
    using published = await release();
    const path = await installWorker({ timeoutMs: 5_000, folder: published.folder });
    expect(path).toBe(join(published.folder, 'worker/out/Release/mediasoup-worker'));
    expect(spawnSync(path).status).toBe(41);
    expect(published.asked).toEqual([
      expect.stringMatching(`^/mediasoup/releases/download/3.1.2/mediasoup-worker-3.1.2-${process.platform}-.*[.]tgz$`),
    ]);
  });

  it.each([
    { fault: { status: 404 }, message: /publishes no worker program for this platform/ },
    { fault: { status: 500 }, message: /the server answered 500/ },
    { fault: { exitCode: 127 }, message: /does not run here/ },
  ])('does not install after $fault', async ({ fault, message }) => {
    using published = await release(fault);
    await expect(installWorker({ timeoutMs: 5_000, folder: published.folder })).rejects.toThrow(message);
    const place = join(published.folder, 'worker/out/Release');
    expect(existsSync(place) ? readdirSync(place) : []).toEqual([]);
  });

  it('comes from MEDIASOUP_WORKER_BIN, which must be an executable', () => {
    const program = join(home, 'worker');
    expect(findWorker({ MEDIASOUP_WORKER_BIN: program })).toEqual({
      path: null,
      reason: 'MEDIASOUP_WORKER_BIN names no program',
    });
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
    expect(findWorker({ MEDIASOUP_WORKER_BIN: program })).toEqual({ path: program });
  });
});
