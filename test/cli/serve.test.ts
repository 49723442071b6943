import { afterEach, expect, it } from 'vitest';
import { apiClient } from '../../bin/cli/api-client.ts';
import { clean, cleanUp, dataFolder } from '../process/ready-server.ts';
import { postgresPid } from '../process/server-process.ts';
import { startTandemProcess, tandem, tandemProcess } from './command-line.ts';

afterEach(cleanUp);

it('tandem serve runs the server until SIGTERM, and prints its address in one document with --json', async () => {
  const dataDir = await dataFolder({ embedsPostgres: true });
  const env = { TANDEM_DATA_DIR: dataDir, PORT: '0', SIP_PORT: '0' };
  const command = startTandemProcess(['serve', '--json'], { cwd: dataDir, env });
  clean.push(() => command.child.kill('SIGKILL'));
  await command.untilPrinted('}\n');
  expect((await tandem(['keys', 'list', '--json'], { cwd: dataDir, env })).exitCode).toBe(0);
  command.child.kill('SIGTERM');
  const { exitCode, document, stderr } = await command.ended;
  expect(exitCode).toBe(0);
  const { url, api_key: apiKey } = document.data as { url: string; api_key: string };
  expect(document).toMatchObject({
    success: true,
    data: { url: expect.stringMatching(/^http:/), sip: { port: expect.any(Number) } },
  });
  expect(stderr).toContain('Tandem is ready');
  await expect(apiClient({ url, apiKey }).get('/dialer/pool')).rejects.toMatchObject({ code: 'UNREACHABLE' });
  expect(await postgresPid(dataDir)).toBeNull();
});

it('tandem serve prints a failed start as one JSON document', async () => {
  const dataDir = await dataFolder({ embedsPostgres: true });
  const env = { TANDEM_DATA_DIR: dataDir, DATABASE_URL: 'postgres://me:geheim@127.0.0.1:9/x' };
  const { exitCode, document } = await tandemProcess(['serve', '--json'], { cwd: dataDir, env });
  expect(exitCode).toBe(1);
  expect(document).toMatchObject({ success: false, code: 'STORAGE_UNAVAILABLE' });
});
