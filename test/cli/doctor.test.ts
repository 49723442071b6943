import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findingText } from '../../bin/cli/commands/doctor.ts';
import type { Finding } from '../../diagnosis/finding.ts';
import { followGuide } from '../guide-path.ts';
import { API_KEY, cleanUp, dataFolder, environment, startReady } from '../process/ready-server.ts';
import { type Run, tandemProcess } from './command-line.ts';

let dataDir: string;

beforeEach(async () => {
  dataDir = await dataFolder({ embedsPostgres: true });
});

afterEach(cleanUp);

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
      'media priority',
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

  it('checks a running server and its ports, as the operations page says, which also makes a backup', async () => {
    const { server, url } = await startReady(dataDir);
    const { sip } = (await server.logged('Tandem is ready')) as { sip: { port: number } };
    const env = environment(dataDir, { PORT: new URL(url).port, SIP_PORT: String(sip.port) });
    await using path = await followGuide('operations', {
      start: 'npm start',
      server: { url, apiKey: API_KEY, env },
    });
    const [checked] = path.steps;
    for (const line of [
      /^✓ ok +server +runs at http:/m,
      /^✓ ok +HTTP port +\d+ is held by the running server$/m,
      /^✓ ok +SIP port +\d+ is the running server's$/m,
      /^✓ ok +database +PostgreSQL 18/m,
      /^✓ ok +schema +all \d+ migrations are applied$/m,
      /^✓ ok +secret key .*keep a copy/m,
      /^✓ ok +clock .*the database server's/m,
      /"name":"accepting_work","ok":true/,
      /^tandem_dependency_up\{dependency="sip_server"\} 1$/m,
      /^objects +/m,
    ]) {
      expect(checked).toMatch(line);
    }
    expect((await stat(join(path.folder, 'backup.tar'))).size).toBeGreaterThan(10_000);
  });

  it('names a malformed setting', async () => {
    const { configuration } = await findings({ RTP_PORT_MIN: '3' });
    expect(configuration).toMatchObject({ status: 'fail', message: expect.stringContaining('RTP_PORT_MIN') });
  });

  it('separates a long name from its message', () => {
    const finding = { check: 'carrier of My carrier', status: 'ok', message: 'It responds.', advice: null } as const;
    expect(findingText(finding, { paint: (_, text) => text })).toBe('✓ ok   carrier of My carrier It responds.');
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
