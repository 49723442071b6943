import { spawnSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseWav } from '../../media/wav.ts';
import { type CommandLineOptions, serverFolder, tandem, tandemProcess } from '../cli/command-line.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { AGENT_HZ, CUSTOMER_HZ, type Platform, startPlatform } from './platform.ts';

const RECORDING_TONE_HZ = 1400;

let platform: Platform;
let folder: Awaited<ReturnType<typeof serverFolder>>;
let options: CommandLineOptions;
beforeAll(async () => {
  platform = await startPlatform({ env: { RECORDING_KEY: Buffer.alloc(32, 1).toString('base64') } });
  folder = await serverFolder();
  const env = { TANDEM_URL: platform.tandem.url, TANDEM_API_KEY: platform.tandem.mintedApiKey ?? '' };
  options = { cwd: folder.path, env };
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const run = (...argv: string[]) => tandem(argv, options);

/** Every recording file of the server, in any format. */
async function filesOnDisk(): Promise<Buffer[]> {
  const root = platform.tandem.dataFolder.path;
  const folders = ['recordings', 'objects', 'tmp'].map((name) => join(root, name));
  const listed = await Promise.all(
    folders.map((path) => readdir(path, { recursive: true, withFileTypes: true }).catch(() => [])),
  );
  const files = listed.flat().filter((entry) => entry.isFile());
  return await Promise.all(files.map((entry) => readFile(join(entry.parentPath, entry.name))));
}

describe('encrypted recording with a beep', () => {
  it('plays the beep to both parties, leaves no plaintext on disk, and plays in every format', async () => {
    const { agent, customer } = await platform.parties();
    const placed = await platform.place({ record: true, recording_beep: true, reference_id: 'sealed' });
    await platform.until(placed.call_id, 'recording.started');
    const received = await Promise.all([
      agent.untilReceived(({ packets }) => packets > 120),
      customer.untilReceived(({ packets }) => packets > 120),
    ]);
    for (const each of received) {
      const frames = Array.from({ length: Math.floor(each.pcm.length / 800) }, (_, i) =>
        each.pcm.subarray(800 * i, 800 * (i + 1)),
      );
      const beeping = frames.filter((frame) => toneLevelDbov(frame, RECORDING_TONE_HZ) > -24);
      // Half a second.
      expect(beeping.length).toBeGreaterThanOrEqual(4);
      expect(beeping.length).toBeLessThanOrEqual(6);
    }
    for (const file of await filesOnDisk()) expect(file.includes('RIFF')).toBe(false);
    await platform.ask('POST', `/dialer/click2call/${placed.call_id}/hangup`);

    const { left, right } = await platform.recordingOf(placed.call_id);
    expect(toneLevelDbov(left, AGENT_HZ)).toBeGreaterThan(-20);
    expect(toneLevelDbov(right, CUSTOMER_HZ)).toBeGreaterThan(-20);
    expect(toneLevelDbov(left, RECORDING_TONE_HZ)).toBeLessThan(-60);
    const path = '/dialer/click2call/sealed/recording?format=mp3&channels=mono';
    const mono = await platform.ask<{ recording: { playback_url: string; peaks_url: string } }>('POST', path);
    const { recording } = mono.body.data;
    const mp3 = Buffer.from(await (await fetch(recording.playback_url)).arrayBuffer());
    expect(mp3.readUInt16BE(0) & 0xffe0).toBe(0xffe0);
    const peaks = (await (await fetch(recording.peaks_url)).json()) as { length: number; data: number[] };
    expect(Math.abs(peaks.length - left.length / 80)).toBeLessThan(1);
    // Both tones are near full scale.
    expect(Math.max(...peaks.data)).toBeGreaterThan(30);

    const files = await filesOnDisk();
    expect(files.length).toBeGreaterThanOrEqual(3);
    for (const file of files) expect(file.subarray(0, 8).toString('latin1')).toBe('TNDMSEAL');
  });

  it('can be downloaded by the command line', async () => {
    const argv = ['recordings', 'download', 'sealed', '--channels', 'mono', '--out', 'a.wav'];
    const { exitCode, stderr, stdout } = await tandemProcess(argv, options);
    expect({ exitCode, stderr, stdout }).toEqual({ exitCode: 0, stderr: '', stdout: 'a.wav is written.\n' });
    const wav = parseWav(await readFile(join(folder.path, 'a.wav')));
    expect(wav.channels).toBe(1);
    for (const hz of [AGENT_HZ, CUSTOMER_HZ]) expect(toneLevelDbov(wav.samples[0]!, hz)).toBeGreaterThan(-20);
    expect((await run('recordings', 'download', 'sealed', '--peaks', '--out', 'a.json')).exitCode).toBe(0);
    expect(JSON.parse(String(await readFile(join(folder.path, 'a.json'))))).toMatchObject({ version: 2 });
    const shown = await run('recordings', 'show', 'sealed', '--format', 'opus');
    expect(shown.stdout).toMatch(/^format +opus, stereo$/m);
    const missing = await run('recordings', 'download', 'nothing');
    expect([missing.exitCode, missing.stderr]).toEqual([1, expect.stringContaining('CALL_NOT_FOUND')]);
  });
});

/** Only root can mount a file system. */
const canMount = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;

describe.skipIf(!canMount)('recording that fills the disk (needs root, to mount a small one)', () => {
  let disk: string;
  beforeAll(() => {
    disk = platform.tandem.dataFolder.recordingsDir;
    // Room for three seconds.
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=96k', 'tmpfs', disk]).status).toBe(0);
  });
  afterAll(() => {
    spawnSync('umount', [disk]);
  });

  it('leaves the call intact, reports the failure once, and plays up to it', async () => {
    const { agent, customer } = await platform.parties();
    const { call_id: callId } = await platform.place({ record: true });
    const failure = await platform.until(callId, 'recording.failed');
    expect(failure).toMatchObject({ state: 'bridged', detail: 'ENOSPC' });
    const before = [agent.received().packets, customer.received().packets] as const;
    await agent.untilReceived(({ packets }) => packets > before[0] + 50);
    await customer.untilReceived(({ packets }) => packets > before[1] + 50);
    expect((await platform.call(callId)).state).toBe('bridged');
    await platform.ask('POST', `/dialer/click2call/${callId}/hangup`);
    const events = (await platform.ended(callId)).map(({ event }) => event);
    expect(events.filter((event) => event === 'recording.failed').length).toBe(1);
    expect(events.at(-1)).toBe('call.completed');
    const { left, right, durationMs } = await platform.recordingOf(callId);
    expect(durationMs).toBeGreaterThan(2_000);
    expect(toneLevelDbov(left.subarray(8000), AGENT_HZ)).toBeGreaterThan(-20);
    expect(toneLevelDbov(right.subarray(8000), CUSTOMER_HZ)).toBeGreaterThan(-20);
  });
});

describe('tandem recordings settings', () => {
  it('shows and changes the retention of recordings', async () => {
    expect((await run('recordings', 'settings')).stdout.split('\n')).toEqual(['kept  forever', 'beep  off', '']);
    const changed = await run('recordings', 'settings', '--keep-days', '30', '--beep', 'on');
    expect(changed.stdout.split('\n')).toEqual(['kept  30 days', 'beep  on', '']);
    expect((await run('recordings', 'settings', '--keep-days', 'forever', '--json')).document.data).toEqual({
      retention_days: null,
      recording_beep: true,
    });
    for (const wrong of [
      ['--keep-days', 'soon'],
      ['--beep', 'yes'],
    ]) {
      expect((await run('recordings', 'settings', ...wrong)).exitCode).toBe(2);
    }
    expect((await run('recordings', 'settings', '--beep', 'off')).stdout).toContain('beep  off');
  });
});
