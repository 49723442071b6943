import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takeOwnership } from '../../storage/embedded/owner-lock.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-owner-'));
});
afterEach(() => rm(folder, { recursive: true }));

const asked = () => ({ file: join(folder, 'owner'), what: 'The folder' });

/** Message with which another process, which is not root, is rejected. Loads the module before it drops its rights. */
async function refusalElsewhere(): Promise<string> {
  const module = new URL('../../storage/embedded/owner-lock.ts', import.meta.url).href;
  const program = `
    import { takeOwnership } from ${JSON.stringify(module)};
    if (process.getuid() === 0) { process.setgid(65534); process.setuid(65534); }
    await takeOwnership(${JSON.stringify(asked())}).catch((error) => console.log(error.message));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  return stdout.trim();
}

describe('owner of a folder', () => {
  it('needs a lock file that it can write, because others could lock it too', async () => {
    await (await takeOwnership(asked())).release();
    await chmod(join(folder, 'owner-lock'), 0o444);
    await chmod(folder, 0o777);
    expect(await refusalElsewhere()).toMatch(/^EACCES: permission denied, .*owner-lock'$/);
  });
});
