import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CALL_PARTIES, RECORDING_CHANNELS } from '../../actors/call-routing.ts';
import { createPlayableObjects } from '../../actors/recordings/recording-objects.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { createMediaPlane } from '../../media/media-plane.workers.ts';
import { type AudioFileWriter, RecordingFile } from '../../media/recording/recording-file.ts';
import { repairRecording, SealedWavWriter } from '../../media/recording/sealed-wav.ts';
import { parseWav } from '../../media/wav.ts';
import { createSealingKeys } from '../../runtime/sealed-file/format.ts';
import { openObjectStore } from '../../storage/objects.ts';
import { createTestClock } from '../actors/fakes.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { Bench } from './relay-bench.ts';
import { freePortRange } from './rtp-phone.ts';

const KEY = Buffer.alloc(32, 8);
const keys = createSealingKeys(KEY);
const unlock = (header: Uint8Array) => keys.open(header, 'call.wav');
const SPEECH = toneFrames('PCMU', { frequenciesHz: [500], durationMs: 1000 });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-faults-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function played(folderOfFile: string, name: string) {
  const objects = await openObjectStore({ folder: folderOfFile });
  const object = (await createPlayableObjects(objects, keys).open(name))!;
  const bytes = await buffer(await object.read({ start: 0, end: object.sizeBytes - 1 }));
  return { bytes, ...parseWav(bytes) };
}

describe('encrypted recording of a killed process', () => {
  it('can be completed, loses one chunk at most, and was never in clear on disk', async () => {
    const filePath = join(folder, 'call.wav.sealed');
    const program = join(import.meta.dirname, 'recording-process.ts');
    const child = spawn('node', [program, filePath, KEY.toString('base64')], { stdio: ['ignore', 'pipe', 'inherit'] });
    const size = async (): Promise<number> => (await stat(filePath).catch(() => ({ size: 0 }))).size;
    await once(child.stdout, 'data');
    while ((await size()) < 64 + 2 * (16_384 + 28)) await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const file = await readFile(filePath);
    expect(file.includes('RIFF')).toBe(false);
    const chunks = Math.floor((file.length - 64) / (16_384 + 28));
    expect((await repairRecording(filePath, unlock))?.bytes).toBe(chunks * 16_384);
    const { samples, durationMs } = await played(folder, 'call.wav.sealed');
    expect(durationMs).toBe((chunks * 16_384 - 44) / 32);
    const [agent, customer] = samples as [Int16Array, Int16Array];
    expect(toneLevelDbov(agent.subarray(1600, 6000), 500)).toBeGreaterThan(-16);
    expect(toneLevelDbov(customer.subarray(1600, 6000), 1000)).toBeGreaterThan(-16);
  });
});

describe('encrypted recording truncated at any byte', () => {
  it('plays as a WAV file of its whole chunks after repair', async () => {
    const filePath = join(folder, 'cut.wav.sealed');
    const unlockCut = (header: Uint8Array) => keys.open(header, 'cut.wav');
    const sealedChunk = 16_384 + 28;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 64, max: 64 + 3 * sealedChunk }), async (length) => {
        const format = { channels: 2, sampleRateHz: 8000 };
        const writer = await SealedWavWriter.open(filePath, format, keys.create('cut.wav')!);
        await writer.append(Buffer.alloc(3 * 16_384, 5));
        await writer.abandon();
        await truncate(filePath, length);
        const whole = Math.max(44, Math.floor((length - 64) / sealedChunk) * 16_384);
        expect((await repairRecording(filePath, unlockCut))?.bytes).toBe(whole);
        const { samples, durationMs } = await played(folder, 'cut.wav.sealed');
        expect(durationMs).toBe((whole - 44) / 32);
        expect(samples[0]!.every((sample) => sample === 0x0505)).toBe(true);
      }),
      { numRuns: 40, examples: [[64], [64 + sealedChunk - 1], [64 + sealedChunk]] },
    );
  });
});

describe('encrypted recording of a dead media worker', () => {
  it('can be completed with its original seal', async () => {
    const range = await freePortRange(4);
    const plane = createMediaPlane({
      ...{ workers: 1, rtpHost: '127.0.0.1', rtpPortMin: range.min, rtpPortMax: range.max },
      workerFile: new URL('./faulty-worker.ts', import.meta.url),
    });
    try {
      const open = async (sessionId: string) =>
        await plane.openSession({
          ...{ sessionId, parties: CALL_PARTIES, signal: new AbortController().signal, onEvent: () => {} },
        });
      const [recorded, other] = [await open('recorded'), await open('other')];
      const filePath = join(folder, 'worker.wav.sealed');
      const seal = keys.create('worker.wav');
      await recorded.startRecording({ filePath, channels: RECORDING_CHANNELS, seal });
      const deadly = join(folder, 'deadly.wav');
      await expect(other.startRecording({ filePath: deadly, channels: RECORDING_CHANNELS })).rejects.toThrow();
      const summary = (await recorded.stopRecording())!;
      const { bytes } = await played(folder, 'worker.wav.sealed');
      expect(summary).toMatchObject({ filePath, bytes: bytes.length });
    } finally {
      await plane.close();
    }
  });
});

/** A small file system of its own; mounting requires root. */
const FULL_AFTER_BYTES = 256 * 1024;
const canMount = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;

describe.skipIf(!canMount)('full disk (requires root, to mount a small one)', () => {
  let disk: string;
  beforeAll(async () => {
    disk = join(folder, 'disk');
    await mkdir(disk);
    const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${FULL_AFTER_BYTES}`, 'tmpfs', disk]);
    expect(status).toBe(0);
  });
  afterAll(() => {
    spawnSync('umount', [disk]);
  });

  it.each([
    ['a plain recording', 'call.wav', null],
    ['an encrypted recording', 'call.wav.sealed', unlock],
  ])('fails %s once, continues the call, and leaves a playable file', async (_name, name, unlockFile) => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const filePath = join(disk, name);
    const seal = unlockFile === null ? null : keys.create('call.wav');
    await bench.session.startRecording({ filePath, channels: RECORDING_CHANNELS, seal });
    const failures = () => bench.events.filter(({ type }) => type === 'recording.failed');
    let said = 0;
    const talk = async () => {
      bench.agent.say(bench.ports.agent, 'PCMU', SPEECH[said % 50]!);
      said += 1;
      await bench.customer.untilReceived(said);
      bench.nowMs += 20;
      if (said % 12 === 0) bench.session.tick();
    };
    // 256 KiB hold eight seconds; the write error follows later.
    while (failures().length === 0) await talk();
    expect(said).toBeGreaterThan(300);
    for (let i = 0; i < 100; i++) await talk();
    expect(failures()).toEqual([{ type: 'recording.failed', detail: 'ENOSPC' }]);
    expect(await bench.session.stopRecording()).toBeNull();
    const length = await repairRecording(filePath, unlockFile);
    expect(length?.bytes).toBeGreaterThan(FULL_AFTER_BYTES - 40_000);
    const { samples, durationMs } = await played(disk, name);
    expect(durationMs).toBe(length?.durationMs);
    expect(toneLevelDbov(samples[0]!.subarray(-8000), 500)).toBeGreaterThan(-16);
    await rm(filePath);
  });

  it.each([
    ['a plain recording', 'call.wav', null],
    ['an encrypted recording', 'call.wav.sealed', keys.create('call.wav')],
  ])('fails the start of %s, and leaves no empty file', async (_name, name, seal) => {
    const filler = join(disk, 'filler');
    await writeFile(filler, Buffer.alloc(2 * FULL_AFTER_BYTES)).catch(() => {});
    await using bench = await Bench.open();
    const starting = bench.session.startRecording({ filePath: join(disk, name), channels: RECORDING_CHANNELS, seal });
    await expect(starting).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(bench.events).toEqual([{ type: 'recording.failed', detail: 'ENOSPC' }]);
    expect(await readdir(disk)).toEqual(['filler']);
    await rm(filler);
  });
});

describe('hanging disk', () => {
  function hangingFile(hangs: 'open' | 'append' | 'finish') {
    const disk = Promise.withResolvers<void>();
    const calls: string[] = [];
    const use = async (call: string): Promise<void> => {
      calls.push(call);
      if (call === hangs) await disk.promise;
    };
    const writer: AudioFileWriter = {
      dataBytes: 0,
      append: () => use('append'),
      rewriteHeader: () => use('rewriteHeader'),
      finish: () => use('finish'),
      abandon: () => use('abandon'),
    };
    const failures: string[] = [];
    const clock = createTestClock();
    const file = new RecordingFile({
      openFile: async () => {
        await use('open');
        return writer;
      },
      onFailed: (detail) => void failures.push(detail),
      clock,
    });
    return { file, calls, failures, clock, release: () => disk.resolve() };
  }

  it('fails a recording once when a megabyte is queued, and writes nothing more', async () => {
    const { file, calls, failures, release, clock } = hangingFile('append');
    await file.open();
    for (let i = 0; i < 100; i++) file.write(new Int16Array(8000));
    expect(failures).toEqual(['the disk is too slow']);
    const finished = file.finish();
    release();
    expect(await finished).toBeNull();
    expect([calls, clock.waiting()]).toEqual([['open', 'append', 'abandon'], []]);
    expect(failures.length).toBe(1);
  });

  it.each(['open', 'append', 'finish'] as const)(
    'delays the end of the call by five seconds at most for %s',
    async (hangs) => {
      const { file, calls, failures, clock, release } = hangingFile(hangs);
      const opening = file.open();
      if (hangs !== 'open') await opening;
      file.write(new Int16Array(8));
      const finished = file.finish();
      while (clock.waiting().length === 0 || !calls.includes(hangs)) await new Promise((done) => setImmediate(done));
      expect(clock.waiting()).toEqual([5_000]);
      clock.advance(5_000);
      expect(await finished).toBeNull();
      expect(failures).toEqual(['the disk is too slow']);
      release();
      await opening;
      while (hangs !== 'finish' && !calls.includes('abandon')) await new Promise((done) => setImmediate(done));
      // Nothing is written after the failure, since the file may already be completed.
      expect(calls.slice(calls.indexOf(hangs) + 1)).toEqual(hangs === 'finish' ? [] : ['abandon']);
      expect(failures.length).toBe(1);
    },
  );
});
