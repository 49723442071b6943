import { copyFile, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Action } from '../../bin/cli/command.ts';
import { COMMANDS } from '../../bin/cli/registry.ts';
import { packageJson } from '../packaging/repository.ts';
import { EXECUTABLE, serverFolder, tandem, tandemProcess } from './command-line.ts';

let folder: Awaited<ReturnType<typeof serverFolder>>;
const commands = await Promise.all(
  COMMANDS.map(async ({ name, summary, load }) => ({ name, summary, command: await load() })),
);
/** Every command line: `call`, `call status`, ... */
const actions = commands.flatMap(({ name, command }) => {
  const named = Object.entries(command.actions ?? {}).map(([key, action]) => ({ path: [name, key], action }));
  return command.action === undefined ? named : [{ path: [name], action: command.action as Action }, ...named];
});

beforeAll(async () => {
  folder = await serverFolder();
});

afterAll(async () => {
  await folder[Symbol.asyncDispose]();
});

const run = (...argv: string[]) => tandem(argv, { cwd: folder.path });

describe('tandem help', () => {
  it.each([[[]], [['--help']], [['-h']], [['help']]])('lists every command with its summary for %j', async (argv) => {
    const { exitCode, stdout, stderr } = await run(...argv);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    for (const { name, summary } of COMMANDS) expect(stdout).toMatch(new RegExp(`^ +${name} +${summary}$`, 'm'));
  });

  it.each(actions.map(({ path, action }) => ({ name: path.join(' '), path, action })))(
    'explains all parameters and options of `$name`',
    async ({ path, action }) => {
      const { exitCode, stdout, stderr } = await run(...path, '--help');
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      expect(stdout).toContain(action.summary);
      expect(stdout).toContain(`Usage: tandem ${path.join(' ')}`);
      for (const { name, about } of action.parameters) expect(stdout).toContain(`  ${name.padEnd(26)}${about}`);
      for (const [name, option] of Object.entries({ ...action.options, json: { about: '' }, help: { about: '' } })) {
        const value = 'value' in option ? ` ${option.value}` : '';
        const line = stdout.split('\n').find((text) => text.startsWith(`  --${name}${value} `));
        expect(line, `--${name}`).toContain(option.about);
      }
    },
  );

  it('prints the same for `help COMMAND` and `COMMAND --help`', async () => {
    for (const path of [['call'], ['wallet', 'top-up']]) {
      expect((await run('help', ...path)).stdout).toBe((await run(...path, '--help')).stdout);
    }
  });

  it('lists the settings for serve', async () => {
    const { stdout } = await run('serve', '--help');
    for (const name of ['TANDEM_DATA_DIR', 'DATABASE_URL', 'RTP_PORT_MIN']) expect(stdout).toContain(name);
  });

  it('lists no unfinished command', () => {
    const names = COMMANDS.map(({ name }) => name);
    expect(names).toEqual([
      'serve',
      'demo',
      'call',
      'recordings',
      'transcribe',
      'speak',
      'voices',
      'chat',
      'memory',
      'judge',
      'trunks',
      'numbers',
      'rules',
      'privacy',
      'keys',
      'wallet',
      'prices',
      'workspaces',
      'users',
      'models',
      'webrtc',
      'backup',
      'restore',
      'doctor',
    ]);
  });

  it('prints one JSON document with --json', async () => {
    const { exitCode, document } = await run('wallet', '--help', '--json');
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({ success: true, data: { help: expect.stringContaining('top-up') } });
  });
});

describe('tandem usage error', () => {
  it.each([
    { typed: ['kyes'], says: ['"kyes", did you mean keys?', 'serve, demo, call, recordings'] },
    { typed: ['sing', 'hello'], says: ['no command "sing"', 'The commands are serve'] },
    { typed: ['transcribe'], says: ['FILE missing'] },
    { typed: ['--colour'], says: ['no command "--colour"'] },
    { typed: ['keys', 'lsit'], says: ['no "lsit", did you mean list?', 'list, create, revoke'] },
    { typed: ['keys'], says: ['followed by one of list, create, revoke'] },
    { typed: ['help', 'walet'], says: ['did you mean wallet?'] },
    { typed: ['call', 'stauts', 'order-1'], says: ['"stauts" is not a phone number, did you mean status?'] },
    { typed: ['call', '+919811111111'], says: ['CUSTOMER missing'] },
    { typed: ['call'], says: ['AGENT and CUSTOMER missing'] },
    { typed: ['call', '1', '2', '3'], says: ['"3" is one argument too many'] },
    { typed: ['call', '1', '2', '--folow'], says: ['--folow', 'did you mean --follow?', 'tandem call --help'] },
    { typed: ['call', '1', '2', '--did'], says: ['--did needs a value'] },
    { typed: ['call', '1', '2', '--did', '--record'], says: ['--did needs a value'] },
    { typed: ['call', '1', '2', '--record=yes'], says: ['--record takes no value'] },
    { typed: ['call', '1', '2', '--max-duration', 'long'], says: ['--max-duration takes seconds'] },
    { typed: ['call', '1', '2', '--metadata', '{'], says: ['--metadata takes a JSON object'] },
    { typed: ['call', 'list', '--url', 'example'], says: ['--url takes an address'] },
    { typed: ['call', 'list', '--url', 'http://me:secret@localhost'], says: ['--url takes an address'] },
    { typed: ['call', 'list', '--key', 'sk_gr\u00fcn'], says: ['--key takes an API key'] },
    { typed: ['keys', 'revoke', 'all'], says: ['ID is the number'] },
    { typed: ['keys', 'create', 'x', '--expires-in-days', '0'], says: ['1 to 3650'] },
    { typed: ['wallet', 'top-up', '-5'], says: ['-5 is not an option'] },
    { typed: ['wallet', 'top-up', '1e3'], says: ['USD takes a decimal'] },
    { typed: ['wallet', 'top-up', '1', '--type', 'gift'], says: ['one_time, subscription, admin_bonus'] },
    { typed: ['wallet', 'top-up', '1', '--key', ''], says: ['--key takes 1 to 255 characters'] },
    { typed: ['wallet', 'top-up', '1', '--key', 'x'.repeat(256)], says: ['--key takes 1 to 255 characters'] },
    { typed: ['wallet', 'transactions', '--limit', '0'], says: ['--limit takes 1 to 1000'] },
    { typed: ['workspaces', 'create', 'Sales'], says: ['--owner takes the e-mail address'] },
    { typed: ['workspaces', 'create', 'Sales', '--owner', 'a@b', '--plan', 'gold'], says: ['free, starter, pro'] },
    { typed: ['trunks', 'set', 'x'], says: ['nothing to change is given'] },
    { typed: ['trunks', 'add', 'x', 'sip:x', '--channels', 'many'], says: ['--channels takes a number'] },
    { typed: ['demo', '--sentences', '99'], says: ['takes 2 to 4'] },
  ])('exits with 2 and one line: tandem $typed', async ({ typed, says }) => {
    const { exitCode, stdout, stderr } = await tandem(typed, { cwd: folder.path, env: { TANDEM_API_KEY } });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toMatch(/^tandem: .+\n$/);
    for (const text of says) expect(stderr).toContain(text);
  });

  it('prints one JSON document with --json in any position', async () => {
    for (const typed of [
      ['kyes', '--json'],
      ['--json', 'kyes'],
    ]) {
      const { exitCode, document } = await run(...typed);
      expect(exitCode).toBe(2);
      expect(document).toEqual({
        success: false,
        code: 'USAGE',
        message: expect.stringContaining('did you mean keys?'),
      });
    }
  });

  it('ignores options after --', async () => {
    const { exitCode, stdout } = await run('call', '1', '2', '--', '--json');
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  });
});

const TANDEM_API_KEY = 'sk_test_usage_0123456789abcdef';

describe('tandem failure', () => {
  it('explains how to get a key, in text and as JSON', async () => {
    const text = await run('call', 'list');
    expect(text).toMatchObject({ exitCode: 1, stdout: '' });
    expect(text.stderr).toMatch(/^tandem: .*TANDEM_API_KEY.*tandem keys create.*\n$/);
    const json = await run('call', 'list', '--json');
    expect(json.exitCode).toBe(1);
    expect(json.document).toEqual({ success: false, code: 'NO_API_KEY', message: expect.any(String) });
  });

  it('names the address where it expected a server', async () => {
    const options = { cwd: folder.path, env: { TANDEM_API_KEY, TANDEM_URL: 'http://127.0.0.1:9' } };
    const { exitCode, stderr } = await tandem(['trunks', 'list'], options);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tandem: no server answers at http:\/\/127\.0\.0\.1:9 .*tandem serve.*\n$/);
  });

  it('reports a missing server with its data folder', async () => {
    const { exitCode, document } = await run('wallet', 'show', '--json');
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ code: 'NO_SERVER', message: expect.stringContaining(join(folder.path, '.data')) });
  });

  it('names a malformed setting in one line', async () => {
    const options = { cwd: folder.path, env: { RTP_PORT_MIN: '3', DATABASE_URL: 'postgres://127.0.0.1:9/x' } };
    const { exitCode, stderr } = await tandem(['keys', 'list'], options);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tandem: RTP_PORT_MIN .*\n$/);
  });

  it('names an unreachable database without its password', async () => {
    const options = { cwd: folder.path, env: { DATABASE_URL: 'postgres://me:geheim@127.0.0.1:9/x' } };
    const { exitCode, stderr } = await tandem(['workspaces', 'list'], options);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tandem: Cannot use the database at 127\.0\.0\.1:9\/x: .*\n$/);
  });
});

describe('bin/tandem', () => {
  it('exits with the exit code of the command', async () => {
    const { exitCode, stdout, stderr } = await tandemProcess(['kyes'], { cwd: folder.path });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toBe((await run('kyes')).stderr);
  });

  it('prints its version', async () => {
    const { version } = packageJson();
    expect((await tandemProcess(['--version'])).stdout).toBe(`${version}\n`);
    expect((await run('--version', '--json')).document.data).toEqual({ version });
  });

  it('works from any folder and through nested symbolic links', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'tandem links '));
    try {
      await symlink(EXECUTABLE, join(elsewhere, 'absolute'));
      await symlink('absolute', join(elsewhere, 'relative'));
      const { exitCode, stderr } = await tandemProcess(['--version'], {
        cwd: '/',
        executable: join(elsewhere, 'relative'),
      });
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    } finally {
      await rm(elsewhere, { recursive: true });
    }
  });

  it('requires npm ci in one line', async () => {
    const checkout = await mkdtemp(join(tmpdir(), 'tandem-bare-'));
    try {
      await mkdir(join(checkout, 'bin'));
      const executable = join(checkout, 'bin/tandem');
      await copyFile(EXECUTABLE, executable);
      const { exitCode, stdout, stderr } = await tandemProcess(['keys', 'list'], { executable });
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
      expect(stderr).toMatch(/^tandem: .*npm ci.*\n$/);
    } finally {
      await rm(checkout, { recursive: true });
    }
  });

  it('writes no colours into a pipe', async () => {
    const { stdout } = await tandemProcess(['doctor'], { cwd: folder.path });
    expect(stdout).toContain('runtime');
    expect(stdout).not.toContain('\u001B');
  });

  it('exits quietly when its pipe closes', async () => {
    const { stderr, exitCode } = await tandemProcess(['-c', `"${EXECUTABLE}" --help | head -1`], {
      executable: '/bin/sh',
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  });
});
