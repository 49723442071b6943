import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AudioFile, type OpenAudioFileOptions, openAudioFile } from '../../../media/audio-file/audio-file.ts';
import { hasPartyPerChannel } from '../../../media/audio-file/channel-likeness.ts';
import { BUNDLED_FFMPEG, findFfmpeg } from '../../../media/audio-file/ffmpeg.ts';
import { meanPower } from '../../../media/dsp/level.ts';
import { eventually } from '../../eventually.ts';
import { spokenUtterances } from '../../speech/spoken.ts';
import { encoded, extensibleWavFile, wavFile } from './wav-files.ts';

/** Four seconds, because encoders take longer than decoders. */
const SPEECH = spokenUtterances()[0]!.samples.subarray(0, 4 * 16_000);
const OTHER_SPEECH = spokenUtterances()[1]!.samples.subarray(0, SPEECH.length);
const SPEECH_MS = (SPEECH.length * 1000) / 16_000;

let folder: string;
let tempDir: string;
let speechPath: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-audio-'));
  tempDir = await mkdtemp(join(folder, 'temp-'));
  speechPath = await put('speech.wav', wavFile(SPEECH));
});
afterAll(() => rm(folder, { recursive: true }));

async function put(name: string, bytes: Buffer | string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, bytes);
  return path;
}

const encodings = new Map<string, Promise<Buffer>>();

/** Encoded once for both ffmpeg programs. */
function speechAs(format: string, more: readonly string[] = []): Promise<Buffer> {
  const key = [format, ...more].join(' ');
  const made = encodings.get(key) ?? encoded(speechPath, format, more);
  encodings.set(key, made);
  return made;
}

async function opened(filePath: string, more: Partial<OpenAudioFileOptions> = {}): Promise<AudioFile> {
  return await openAudioFile({ filePath, tempDir, signal: new AbortController().signal, ...more });
}

async function leftBehind(): Promise<string[]> {
  return await readdir(tempDir);
}

async function samplesOf({ source }: AudioFile): Promise<Int16Array> {
  const file = await readFile(source.filePath);
  return Int16Array.from({ length: source.bytes / 2 }, (_, i) => file.readInt16LE(source.offset + i * 2));
}

/** Container and ffmpeg output options. The slow bundled program tests the first few only. */
const FORMATS: [container: string, format: string, more: string[]][] = [
  ['mp3', 'mp3', ['-b:a', '64k']],
  ['mov', 'mp4', ['-c:a', 'aac', '-movflags', 'frag_keyframe+empty_moov']],
  ['ogg', 'ogg', ['-c:a', 'libvorbis']],
  ['matroska', 'webm', ['-c:a', 'libopus']],
  ['flac', 'flac', []],
  ['wav', 'wav', ['-c:a', 'pcm_s24le']],
  ['wav', 'wav', ['-ar', '11025']],
  ['au', 'au', []],
];

const programs = [BUNDLED_FFMPEG, await findFfmpeg()].filter(
  // Without a system ffmpeg, only the bundled one is tested.
  (program, index, all) => all.indexOf(program) === index,
);

describe.each(programs)('decoding with the $kind ffmpeg', (ffmpeg) => {
  it.each(ffmpeg.kind === 'system' ? FORMATS : FORMATS.slice(0, 4))(
    'supports %s, from -f %s %j',
    async (container, format, more) => {
      const path = await put(`of-${ffmpeg.kind}.${format}`, await speechAs(format, more));
      const file = await opened(path, { ffmpeg });
      expect(file).toMatchObject({ container, isIncomplete: false });
      expect(file.source.format).toEqual({ encoding: 'linear16', sampleRateHz: 16_000, channels: 1 });
      // Lossy encoders pad both ends.
      expect(Math.abs(file.durationMs - SPEECH_MS)).toBeLessThan(200);
      const loudness = meanPower(await samplesOf(file)) / meanPower(SPEECH);
      expect(loudness).toBeGreaterThan(0.8);
      expect(loudness).toBeLessThan(1.25);
      expect((await stat(file.source.filePath)).mode & 0o777).toBe(0o600);
      await file.dispose();
      expect(await leftBehind()).toEqual([]);
    },
  );

  it.each([
    ['24 bits in 32', 1, 24, 4],
    ['16 bits in 24', 1, 16, 3],
    ['24 bits in 32-bit floating point', 3, 24, 4],
    ['32 announced bits in 24', 1, 32, 3],
  ] as const)('reads WAV with %s', async (_what, kind, validBits, sampleBytes) => {
    const path = await put('padded.wav', extensibleWavFile({ kind, validBits, sampleBytes }, SPEECH));
    const file = await opened(path, { ffmpeg });
    expect(file).toMatchObject({ durationMs: SPEECH_MS, isIncomplete: false });
    expect(await samplesOf(file)).toEqual(SPEECH);
    await file.dispose();
  });

  it.each([
    ['one channel at the left', 0b1, [SPEECH]],
    ['two channels at the left and the center', 0b101, [SPEECH, OTHER_SPEECH]],
  ] as const)('keeps %s', async (_what, loudspeakers, channels) => {
    const bytes = extensibleWavFile({ kind: 1, validBits: 24, sampleBytes: 3, loudspeakers }, ...channels);
    const file = await opened(await put('loudspeakers.wav', bytes), { ffmpeg });
    expect(file.source.format.channels).toBe(channels.length);
    const samples = await samplesOf(file);
    for (const [channel, expected] of channels.entries()) {
      const kept = samples.filter((_, i) => i % channels.length === channel);
      expect(kept.subarray(0, expected.length)).toEqual(expected);
    }
    await file.dispose();
  });

  it('reads RF64 whose writer left the length open', async () => {
    const wav = wavFile(SPEECH);
    wav.writeUInt32LE(0xffffffff, wav.indexOf('data') + 4);
    const head = Buffer.from('RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0', 'latin1');
    const file = await opened(await put('rf64.wav', Buffer.concat([head, Buffer.alloc(28), wav.subarray(12)])), {
      ffmpeg,
    });
    expect(file).toMatchObject({ durationMs: SPEECH_MS, isIncomplete: false });
    expect(await samplesOf(file)).toEqual(SPEECH);
    await file.dispose();
  });

  it('keeps two channels and downmixes more to two', async () => {
    const stereo = await put('stereo.wav', wavFile(SPEECH, OTHER_SPEECH));
    for (const [name, more] of [
      ['two', []],
      ['six', ['-ac', '6']],
    ] as const) {
      const path = await put(`${name}.flac`, await encoded(stereo, 'flac', more));
      const file = await opened(path, { ffmpeg });
      expect(file.source.format.channels, name).toBe(2);
      expect(await hasPartyPerChannel(file), name).toBe(true);
      await file.dispose();
    }
  });

  it.each([3, 6, 8])('keeps a voice in the bass channel of %i channels', async (channels) => {
    // Files of several microphones name no loudspeakers, so ffmpeg takes one channel for the bass of a cinema.
    const bass = channels === 3 ? 2 : 3;
    const silence = new Int16Array(SPEECH.length);
    const samples = Array.from({ length: channels }, (_, channel) => (channel === bass ? SPEECH : silence));
    const file = await opened(await put(`${channels}.wav`, wavFile(...samples)), { ffmpeg });
    expect(meanPower(await samplesOf(file)) / meanPower(SPEECH)).toBeGreaterThan(0.02);
    await file.dispose();
  });

  it('distinguishes unreadable files from those without audio, and leaves no files', async () => {
    const noise = Buffer.from(Array.from({ length: 10_000 }, (_, i) => (i * 7919) % 251));
    await expect(opened(await put('noise.mp3', noise), { ffmpeg })).rejects.toMatchObject({
      code: 'AUDIO_NOT_READABLE',
    });
    await expect(opened(await put('text.m4a', 'These are words.'), { ffmpeg })).rejects.toMatchObject({
      code: 'AUDIO_NOT_READABLE',
    });
    const silentFilm = await speechAs('matroska', [
      ...['-filter_complex', 'color=s=16x16:d=0.2', '-an', '-c:v', 'mpeg4'],
    ]);
    await expect(opened(await put('film.mkv', silentFilm), { ffmpeg })).rejects.toMatchObject({
      code: 'AUDIO_STREAM_MISSING',
    });
    expect(await leftBehind()).toEqual([]);
  });

  it('opens no other file that a playlist or script names', async () => {
    const scripts = [
      `#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://${speechPath}\n#EXT-X-ENDLIST\n`,
      `ffconcat version 1.0\nfile '${speechPath}'\n`,
    ];
    for (const script of scripts) {
      await expect(opened(await put('list.mp3', script), { ffmpeg })).rejects.toMatchObject({
        code: 'AUDIO_NOT_READABLE',
      });
    }
  });

  it('returns the readable part of a truncated file, marked as incomplete', async () => {
    const whole = await speechAs('flac');
    const file = await opened(await put('cut.flac', whole.subarray(0, whole.length / 2)), { ffmpeg });
    expect(file.isIncomplete).toBe(true);
    expect(file.durationMs).toBeGreaterThan(SPEECH_MS * 0.3);
    expect(file.durationMs).toBeLessThan(SPEECH_MS * 0.7);
    await file.dispose();
  });

  it.each([
    { channels: 1, refused: true },
    { channels: 0, refused: false },
  ])('rejects a file with too many declared samples: $refused', async ({ channels, refused }) => {
    const bytes = Buffer.from(await speechAs('flac'));
    // STREAMINFO (RFC 9639 section 8.2): the 36-bit sample count ends at byte 26. 2^32 samples, or unknown.
    bytes.writeUInt8((bytes.readUInt8(21) & 0xf0) | channels, 21);
    bytes.writeUInt32BE(0, 22);
    const path = await put('promise.flac', bytes);
    const opening = opened(path, { ffmpeg });
    if (refused)
      await expect(opening).rejects.toMatchObject({ code: 'AUDIO_TOO_LONG', details: { most_samples: 403_200_000 } });
    else await (await opening).dispose();
    expect(await leftBehind()).toEqual([]);
  });

  it('stops at the maximum duration', async () => {
    const path = await put('long.flac', await speechAs('flac'));
    await expect(opened(path, { ffmpeg, longestMs: 2_000 })).rejects.toMatchObject({ code: 'AUDIO_TOO_LONG' });
    expect(await leftBehind()).toEqual([]);
  });
});

describe('system ffmpeg', () => {
  it('leaves no file behind when aborted', async () => {
    const tempDir = await mkdtemp(join(folder, 'temp-'));
    const filePath = join(folder, 'speech.mp3');
    await writeFile(filePath, 'no WAV');
    const controller = new AbortController();
    const opening = openAudioFile({
      filePath,
      tempDir,
      signal: controller.signal,
      ffmpeg: { kind: 'system', command: ['/bin/sh', '-c', 'echo begun; exec sleep 1000'] },
    });
    await eventually(async () => expect(await readdir(tempDir)).toHaveLength(1));
    controller.abort(new Error('called off'));
    await expect(opening).rejects.toThrow('called off');
    expect(await readdir(tempDir)).toEqual([]);
  });

  it('reports an ffmpeg that cannot start as an internal error', async () => {
    const filePath = join(folder, 'fine.mp3');
    await writeFile(filePath, 'who knows');
    const opening = openAudioFile({
      filePath,
      tempDir: folder,
      signal: new AbortController().signal,
      ffmpeg: { kind: 'system', command: [join(folder, 'no-such-program')] },
    });
    await expect(opening).rejects.toThrow('cannot be run: 127');
  });
});

describe('raw and WAV files', () => {
  it('use a WAV file in place', async () => {
    const file = await opened(speechPath);
    expect(file).toMatchObject({ container: 'wav', durationMs: SPEECH_MS, isIncomplete: false });
    expect(file.source).toEqual({
      filePath: speechPath,
      offset: 44,
      bytes: SPEECH.length * 2,
      format: { encoding: 'linear16', sampleRateHz: 16_000, channels: 1 },
    });
    await file.dispose();
    expect((await stat(speechPath)).size).toBeGreaterThan(44);
  });

  it('report a truncated WAV file as incomplete', async () => {
    const whole = wavFile(SPEECH);
    const file = await opened(await put('cut.wav', whole.subarray(0, 44 + 32_001)));
    expect(file).toMatchObject({ durationMs: 1000, isIncomplete: true });
  });

  it.each([
    ['call.ulaw', null, 'mulaw'],
    ['CALL.ULAW', null, 'mulaw'],
    ['call', 'audio/basic', 'mulaw'],
    ['call.bin', 'audio/PCMU; rate=8000', 'mulaw'],
    ['call.alaw', null, 'alaw'],
    ['call', 'audio/pcma', 'alaw'],
  ])('read %s of type %s as raw %s', async (fileName, mediaType, encoding) => {
    const path = await put('raw', Buffer.alloc(8_000, 0x55));
    const file = await opened(path, { fileName, mediaType });
    expect(file).toMatchObject({ durationMs: 1000, container: 'raw' });
    expect(file.source).toMatchObject({ offset: 0, bytes: 8_000, format: { encoding, sampleRateHz: 8_000 } });
  });

  it('prefer the content to the name: a WAV file named .ulaw', async () => {
    expect((await opened(speechPath, { fileName: 'speech.ulaw' })).container).toBe('wav');
  });

  it('prefer the content to the type: linear AU, MP3 and 24-bit WAV of type audio/basic', async () => {
    for (const [container, format, more] of [
      ['au', 'au', ['-c:a', 'pcm_s16be']],
      ['mp3', 'mp3', ['-b:a', '64k', '-id3v2_version', '3']],
      ['wav', 'wav', ['-c:a', 'pcm_s24le']],
    ] as const) {
      const path = await put('mislabelled', await speechAs(format, more));
      const file = await opened(path, { fileName: 'call', mediaType: 'audio/basic' });
      expect(file.container).toBe(container);
      expect(Math.abs(file.durationMs - SPEECH_MS)).toBeLessThan(200);
      await file.dispose();
    }
  });

  it('reject an empty file and a header without samples', async () => {
    for (const [name, bytes] of [
      ['nothing', Buffer.alloc(0)],
      ['header.wav', wavFile(new Int16Array())],
    ] as const) {
      await expect(opened(await put(name, bytes))).rejects.toMatchObject({ code: 'AUDIO_EMPTY' });
    }
  });
});

describe('two-channel detection', () => {
  it.each([
    ['two parties', wavFile(SPEECH, OTHER_SPEECH), true],
    [
      'two parties with crosstalk',
      wavFile(
        SPEECH,
        SPEECH.map((sample) => sample / 8),
      ),
      true,
    ],
    ['one microphone', wavFile(SPEECH, SPEECH), false],
    [
      'one microphone, one side louder',
      wavFile(
        SPEECH,
        SPEECH.map((sample) => sample * 0.7),
      ),
      false,
    ],
    ['silence', wavFile(new Int16Array(16_000), new Int16Array(16_000)), false],
    ['one channel', wavFile(SPEECH), false],
  ])('classifies %s', async (_of, bytes, expected) => {
    expect(await hasPartyPerChannel(await opened(await put('channels.wav', bytes)))).toBe(expected);
  });
});
