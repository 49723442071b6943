import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Finding } from '../../diagnosis/finding.ts';
import { startServerProcess } from '../process/server-process.ts';
import { type Run, tandemProcess } from './command-line.ts';

const clean: (() => Promise<unknown> | unknown)[] = [];
let dataDir: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'tandem-doctor-'));
  clean.push(() => rm(dataDir, { recursive: true, force: true }));
});

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
});

/** Runs the doctor on free ports. */
async function doctor(env: Record<string, string> = {}, ...argv: string[]): Promise<Run> {
  const defaults = { TANDEM_DATA_DIR: dataDir, PORT: '0', SIP_PORT: '0' };
  return await tandemProcess(['doctor', ...argv], { cwd: dataDir, env: { ...defaults, ...env } });
}

async function findings(env: Record<string, string> = {}): Promise<Record<string, Finding>> {
  const { exitCode, document } = await doctor(env, '--json');
  const { findings: found } = document.data as { findings: Finding[] };
  const failed = found.some(({ status }) => status === 'fail');
  expect({ exitCode, success: document.success }).toEqual({ exitCode: failed ? 1 : 0, success: !failed });
  for (const { status, advice } of found) expect(advice === null).toBe(status === 'ok');
  return Object.fromEntries(found.map((finding) => [finding.check, finding]));
}

describe('tandem doctor', () => {
  it('passes on a fresh machine, announces what the first start does, and changes nothing', async () => {
    const { exitCode, stdout, stderr } = await doctor();
    expect({ exitCode, stderr }, stdout).toEqual({ exitCode: 0, stderr: '' });
    for (const check of [
      'runtime',
      'data folder',
      'disk',
      'secret key',
      'database',
      'clock',
      'RTP ports',
      'media sockets',
      'WebRTC',
      'SIP_HOST',
      'transcription',
    ]) {
      expect(stdout).toMatch(new RegExp(`^[✓!] (ok|warn) +${check} `, 'm'));
    }
    expect(stdout).toContain('the first start makes');
    const again = await findings();
    expect(again['speech synthesis']?.message).toBe('eSpeak NG: 117 languages, 227 voices');
    expect(again['optional programs']?.message).toMatch(/ffmpeg is (not )?installed \(reads uploads/);
    expect(again['secret key']?.message).toContain('the first start makes');
  });

  it('checks a running server with its database, and recognises its own ports', async () => {
    const range = { RTP_PORT_MIN: '36000', RTP_PORT_MAX: '36999' };
    const env = { TANDEM_DATA_DIR: dataDir, PORT: '0', SIP_PORT: '0', ...range };
    const server = startServerProcess(env);
    clean.push(async () => {
      server.child.kill('SIGTERM');
      await server.exited;
    });
    const { url, sip } = (await server.logged('Tandem is ready')) as { url: string; sip: { port: number } };
    const found = await findings({ ...range, PORT: new URL(url).port, SIP_PORT: String(sip.port) });
    expect(Object.values(found).filter(({ status }) => status === 'fail')).toEqual([]);
    expect(found.server?.message).toBe(`runs at ${url}`);
    expect(found['HTTP port']?.message).toContain('held by the running server');
    expect(found.database?.message).toMatch(/^PostgreSQL 18/);
    expect(found.schema?.message).toMatch(/^all \d+ migrations are applied$/);
    expect(found['secret key']).toMatchObject({ status: 'ok', message: expect.stringContaining('keep a copy') });
    expect(found.clock).toMatchObject({ status: 'ok', message: expect.stringContaining("the database server's") });
  });

  it('names a malformed setting', async () => {
    const { configuration } = await findings({ RTP_PORT_MIN: '3' });
    expect(configuration).toMatchObject({ status: 'fail', message: expect.stringContaining('RTP_PORT_MIN') });
  });

  it('prints the remedy below a failed check, and exits with 1', async () => {
    const { exitCode, stdout, stderr } = await doctor({ RTP_HOST: '0.0.0.0' });
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^✗ fail RTP_HOST .*\n +-> Set RTP_HOST to the address/m);
    expect(stderr).toMatch(/^tandem: 1 of \d+ checks failed.*\n$/);
  });

  it('names an unreachable database without its password', async () => {
    const run = await doctor({ DATABASE_URL: 'postgres://me:geheim@127.0.0.1:9/x' });
    expect(run.exitCode).toBe(1);
    expect(run.stdout).toMatch(/^✗ fail database .*ECONNREFUSED/m);
    expect(run.stdout + run.stderr).not.toContain('geheim');
  });
});
