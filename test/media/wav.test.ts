import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseWav, readWav, repairWav, WavFileWriter, wavHeader } from '../../media/wav.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-wav-'));
});
afterEach(() => rm(folder, { recursive: true }));

const stereo = { channels: 2, sampleRateHz: 8000 };

describe('WAV files', () => {
  it('contain the written samples, with owner-only permissions', async () => {
    const filePath = join(folder, 'a.wav');
    const writer = await WavFileWriter.open(filePath, stereo);
    await writer.append(Buffer.from(Int16Array.of(1, -2, 3, -4).buffer));
    await writer.append(Buffer.from(Int16Array.of(32767, -32768).buffer));
    await writer.finish();
    expect(await readWav(filePath)).toEqual({
      ...stereo,
      durationMs: 3 / 8,
      samples: [Int16Array.of(1, 3, 32767), Int16Array.of(-2, -4, -32768)],
    });
    expect((await stat(filePath)).mode & 0o777).toBe(0o600);
  });

  it('may contain unknown chunks', () => {
    const plain = Buffer.concat([wavHeader(stereo, 4), Buffer.from([1, 0, 2, 0])]);
    const list = Buffer.from('LIST\x03\x00\x00\x00abc\x00', 'latin1');
    const withList = Buffer.concat([plain.subarray(0, 36), list, plain.subarray(36)]);
    expect(parseWav(withList)).toEqual(parseWav(plain));
  });

  it('with hostile bytes fail or parse within bounds', () => {
    const valid = Buffer.concat([wavHeader(stereo, 400), Buffer.alloc(400)]);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(43), fc.nat(255)), { maxLength: 4 }), fc.nat(444), (edits, length) => {
        const file = Buffer.from(valid.subarray(0, length));
        for (const [index, value] of edits) if (index < file.length) file[index] = value;
        try {
          const { samples } = parseWav(file);
          expect(samples.reduce((sum, channel) => sum + channel.length * 2, 0)).toBeLessThanOrEqual(file.length);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('state the 32-bit maximum if they are larger', () => {
    const header = wavHeader(stereo, 2 ** 33);
    expect(header.readUInt32LE(4)).toBe(0xffffffff);
  });
});

describe('WAV repair', () => {
  it('corrects the header lengths and truncates incomplete frames', async () => {
    const filePath = join(folder, 'a.wav');
    await fc.assert(
      fc.asyncProperty(fc.nat(100), fc.nat(1000), async (bytes, claimed) => {
        await writeFile(filePath, Buffer.concat([wavHeader(stereo, claimed), Buffer.alloc(bytes, 7)]));
        const repair = await repairWav(filePath);
        const whole = bytes - (bytes % 4);
        expect(repair.bytes).toBe(44 + whole);
        const file = await readFile(filePath);
        expect(file.length).toBe(44 + whole);
        expect([file.readUInt32LE(4), file.readUInt32LE(40)]).toEqual([36 + whole, whole]);
        expect(await repairWav(filePath)).toEqual({ outcome: 'whole', bytes: 44 + whole });
      }),
      { numRuns: 50 },
    );
  });

  it('completes a truncated header to an empty recording', async () => {
    const filePath = join(folder, 'a.wav');
    for (const bytes of [0, 3, 20, 43]) {
      await writeFile(filePath, wavHeader(stereo, 0).subarray(0, bytes));
      expect(await repairWav(filePath)).toMatchObject({ outcome: 'repaired', bytes: 44 });
      expect(await readWav(filePath)).toMatchObject({ ...stereo, durationMs: 0 });
    }
  });

  it('leaves other files unchanged', async () => {
    const filePath = join(folder, 'a.wav');
    for (const content of ['hello', 'x'.repeat(100), `RIFFxxxxWAVEfmt ${'x'.repeat(100)}`]) {
      await writeFile(filePath, content);
      expect(await repairWav(filePath)).toEqual({ outcome: 'not-wav', bytes: content.length });
      expect(await readFile(filePath, 'utf8')).toBe(content);
    }
  });

  it('completes the recording of a killed process', async () => {
    const filePath = join(folder, 'killed.wav');
    const child = spawn('node', [join(import.meta.dirname, 'recording-process.ts'), filePath], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const size = async (): Promise<number> => (await stat(filePath).catch(() => ({ size: 0 }))).size;
    await once(child.stdout, 'data');
    while ((await size()) < 44 + 32_000) await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const killedBytes = await size();
    expect((await readFile(filePath)).readUInt32LE(40)).toBeLessThan(killedBytes - 44);
    expect(await repairWav(filePath)).toMatchObject({ outcome: 'repaired' });
    const { samples, durationMs } = await readWav(filePath);
    expect(durationMs).toBe(Math.floor((killedBytes - 44) / 4) / 8);
    const [agent, customer] = samples as [Int16Array, Int16Array];
    expect(toneLevelDbov(agent.subarray(1600, 8000), 500)).toBeGreaterThan(-16);
    expect(toneLevelDbov(customer.subarray(1600, 8000), 1000)).toBeGreaterThan(-16);
  });
});
