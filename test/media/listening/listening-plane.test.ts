import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { AudioFormat } from '../../../machines/utterances.ts';
import { decodeG711 } from '../../../media/codecs/g711.ts';
import type { ListeningPlane, ListenToFileOptions } from '../../../media/listening-plane.ts';
import { createListeningPlane } from '../../../media/listening-plane.workers.ts';
import { TAP_FORMAT } from '../../../media/media-plane.ts';
import { SampleRing } from '../../../media/sample-ring.ts';
import { eventually } from '../../eventually.ts';
import { asMulaw8k, spokenUtterances } from '../../speech/spoken.ts';
import { bytesOf, joined, LINEAR_16K, listenLive, MULAW_8K, Recogniser, silence, writeInFrames } from './recogniser.ts';

const spoken = new Map(spokenUtterances().map((utterance) => [utterance.name, utterance]));
const sentence = spoken.get('librivox-0880')!.samples;
const command = spoken.get('goforward')!.samples;
const twoUtterances = joined(silence(1000), sentence, silence(2000), command, silence(300));

let plane: ListeningPlane;
let folder: string;

beforeAll(async () => {
  plane = createListeningPlane({ workers: 1 });
  folder = await mkdtemp(join(tmpdir(), 'tandem-listening-'));
});

afterAll(async () => {
  await plane.close();
  await rm(folder, { recursive: true });
});

describe('listening to a live stream', () => {
  it('posts each utterance with audio, times and signal-to-noise ratio', async () => {
    const { session, recogniser, events, untilEvent } = await listenLive(plane);
    writeInFrames(session, asMulaw8k(twoUtterances));
    await untilEvent('speech.started');
    const received = await session.finish();
    await recogniser.closed;
    expect(recogniser.isEnded).toBe(true);
    const [first, second] = recogniser.utterances;
    expect(recogniser.utterances.map(({ outcome }) => outcome)).toEqual(['end', 'end']);
    // Speech begins at 0.3 s in the sentence and at 0.55 s in the command.
    expect(Math.abs(first!.startMs + 300 - 1300)).toBeLessThan(150);
    const secondFromMs = 3000 + sentence.length / 16 + 550;
    expect(Math.abs(second!.startMs + 300 - secondFromMs)).toBeLessThan(150);
    expect(first!.summary!.snrDb).toBeGreaterThan(30);
    expect(first!.samples.length / 16).toBeGreaterThan(first!.summary!.endMs - first!.startMs);
    expect(received.durationMs).toBeCloseTo(twoUtterances.length / 16, 0);
    expect(received.speechMs).toBe(first!.summary!.speechMs + second!.summary!.speechMs);
    expect(events.map(({ type }) => type)).toEqual(['speech.started', 'speech.started']);
    expect(plane.capacity()).toEqual({ sessions: 0, workers: 1 });
  });

  it('ends an utterance on demand without a pause, and continues', async () => {
    const { session, recogniser } = await listenLive(plane);
    const speech = asMulaw8k(twoUtterances);
    const inMidSentence = 8 * (1000 + sentence.length / 16 - 500);
    writeInFrames(session, speech.subarray(0, inMidSentence));
    session.endUtterance();
    await recogniser.until(({ utterances }) => utterances[0]?.outcome === 'end');
    expect(recogniser.utterances).toHaveLength(1);
    writeInFrames(session, speech.subarray(inMidSentence));
    await session.finish();
    await recogniser.closed;
    expect(recogniser.utterances.map(({ outcome }) => outcome)).toEqual(['end', 'end', 'end']);
    const [first, second] = recogniser.utterances;
    expect(second!.startMs).toBeGreaterThanOrEqual(first!.summary!.endMs);
    session.endUtterance();
  });

  it('reports its progress every 250 ms and near the end', async () => {
    const reportedMs: number[] = [];
    const { session } = await listenLive(plane, { onAnalysed: (analysedMs) => reportedMs.push(analysedMs) });
    writeInFrames(session, asMulaw8k(twoUtterances));
    const { durationMs } = await session.finish();
    expect(reportedMs).toEqual([...reportedMs].sort((a, b) => a - b));
    expect(reportedMs.length).toBeGreaterThan(durationMs / 500);
    expect(durationMs - reportedMs.at(-1)!).toBeLessThan(300);
  });

  it('gives the same result for any block sizes', async () => {
    const bytes = bytesOf(twoUtterances);
    const received = [];
    for (const frameBytes of [bytes.length, 641, 7001]) {
      const { session, recogniser } = await listenLive(plane, { format: LINEAR_16K });
      writeInFrames(session, bytes, frameBytes);
      await session.finish();
      await recogniser.closed;
      received.push(recogniser.utterances);
    }
    expect(received[0]).toHaveLength(2);
    expect(received[1]).toEqual(received[0]);
    expect(received[2]).toEqual(received[0]);
  });

  it('applies a new format, pause and enhancement from the next byte on', async () => {
    const { session, recogniser } = await listenLive(plane);
    writeInFrames(session, asMulaw8k(joined(silence(1000), sentence, silence(2000))));
    session.configure({ format: LINEAR_16K, utteranceEndMs: 3000, enhancement: 'light' });
    writeInFrames(session, bytesOf(joined(command, silence(1500), command, silence(500))));
    const { durationMs } = await session.finish();
    await recogniser.closed;
    expect(recogniser.utterances).toHaveLength(2);
    expect(recogniser.utterances[1]!.summary!.speechMs).toBeGreaterThan(2500);
    expect(durationMs).toBeCloseTo(5000 + (sentence.length + 2 * command.length) / 16, 0);
  });

  it('copies data that is part of a larger buffer', async () => {
    const { session, recogniser } = await listenLive(plane);
    const larger = asMulaw8k(joined(silence(500), command, silence(500)));
    session.write(larger.subarray(0, 10_000));
    expect(larger.length).toBeGreaterThan(10_000);
    session.write(larger.subarray(10_000));
    await session.finish();
    await recogniser.closed;
    expect(recogniser.utterances).toHaveLength(1);
  });

  it('reads samples that another thread writes, and drains them before it ends', async () => {
    const { port1, port2 } = new MessageChannel();
    const { session, recogniser } = await listenLive(plane, { inlet: port1, format: TAP_FORMAT });
    const ring = new SampleRing(8000);
    port2.postMessage(ring.memory);
    const octets = asMulaw8k(joined(silence(500), command, silence(1500)));
    const samples = new Int16Array(octets.length);
    decodeG711('PCMU', octets, samples);
    ring.write(samples.subarray(0, 8000));
    await eventually(() => expect(ring.waiting).toBe(0));
    ring.write(samples.subarray(8000));
    const { durationMs } = await session.finish();
    await recogniser.closed;
    expect(durationMs).toBeCloseTo(samples.length / 8, 0);
    expect(ring.waiting).toBe(0);
    expect(recogniser.utterances.map(({ outcome }) => outcome)).toEqual(['end']);
  });

  it('reads samples of another thread at the rate of their ring', async () => {
    const { port1, port2 } = new MessageChannel();
    const { session, recogniser } = await listenLive(plane, { inlet: port1, format: TAP_FORMAT });
    const ring = new SampleRing(16_000);
    port2.postMessage(ring.memory);
    const samples = joined(silence(500), command, silence(1500));
    ring.write(samples);
    await eventually(() => expect(ring.waiting).toBe(0));
    const { durationMs } = await session.finish();
    await recogniser.closed;
    expect(durationMs).toBeCloseTo(samples.length / 16, 0);
    expect(recogniser.utterances.map(({ outcome }) => outcome)).toEqual(['end']);
  });

  it('stops when its owner aborts, and leaves nothing behind', async () => {
    const { session, recogniser, owner } = await listenLive(plane);
    writeInFrames(session, asMulaw8k(joined(silence(500), sentence)));
    await recogniser.until(({ utterances }) => utterances.length > 0);
    owner.abort(new Error('the client left'));
    await recogniser.closed;
    expect(recogniser.isEnded).toBe(false);
    expect(recogniser.utterances[0]!.outcome).toBe('open');
    await session.close();
    await expect(session.finish()).rejects.toMatchObject({ code: 'INTERNAL' });
    session.write(new Uint8Array(8));
    session.configure({ utteranceEndMs: 2000 });
    expect(plane.capacity().sessions).toBe(0);
    expect(await plane.dump()).toMatchObject({ workers: [{ sessions: [] }] });
  });

  it('does not open for an aborted owner', async () => {
    const recogniser = new Recogniser();
    const reason = new Error('gone');
    const settings = { format: MULAW_8K, utteranceEndMs: 1000, enhancement: 'off' as const };
    const options = { ...settings, sessionId: 's', utterances: recogniser.port, onEvent: () => {} };
    await expect(plane.open({ ...options, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    recogniser.close();
    expect(plane.capacity().sessions).toBe(0);
  });

  it('dumps its state', async () => {
    const { session } = await listenLive(plane, { enhancement: 'adaptive' });
    session.write(asMulaw8k(silence(1000)));
    expect(await plane.dump()).toMatchObject({
      sessions: 1,
      workers: [
        {
          state: 'running',
          voiceNetworkProblem: null,
          noiseSuppressionProblem: null,
          sessions: [
            { sessionId: 'session', format: MULAW_8K, durationMs: expect.closeTo(1000, -2), isSpeaking: false },
          ],
        },
      ],
    });
    await session.close();
  });
});

describe('listening to a file', () => {
  const sixSentences = joined(...Array.from({ length: 6 }, () => joined(sentence, silence(900))));

  async function fileOf(name: string, bytes: Uint8Array): Promise<string> {
    const filePath = join(folder, name);
    await writeFile(filePath, bytes);
    return filePath;
  }

  function optionsFor(
    recogniser: Recogniser,
    source: { filePath: string; offset?: number; bytes: number; format: AudioFormat },
    more: Partial<ListenToFileOptions> = {},
  ): ListenToFileOptions {
    return {
      source: { offset: 0, ...source },
      channels: 'mixed',
      enhancement: 'off',
      minSplitMs: 5000,
      utterances: recogniser.port,
      signal: new AbortController().signal,
      ...more,
    };
  }

  it('joins utterances into chunks, starting at an offset', async () => {
    const bytes = bytesOf(sixSentences);
    const filePath = await fileOf('six.raw', Buffer.concat([Buffer.alloc(44, 0x7f), bytes, Buffer.alloc(999, 0x7f)]));
    const recogniser = new Recogniser();
    const source = { filePath, offset: 44, bytes: bytes.length, format: LINEAR_16K };
    const received = await plane.listenToFile(optionsFor(recogniser, source));
    await recogniser.closed;
    expect(recogniser.isEnded).toBe(true);
    expect(recogniser.utterances.map(({ utteranceId, outcome }) => [utteranceId, outcome])).toEqual([
      [0, 'end'],
      [1, 'end'],
      [2, 'end'],
    ]);
    expect(received).toMatchObject({ utterances: 3, isSilent: false, durationMs: sixSentences.length / 16 });
    expect(plane.capacity().sessions).toBe(0);
  });

  it('processes stereo channels separately or as their mean', async () => {
    const left = joined(sentence, silence(3000));
    const right = joined(silence(left.length / 16 - command.length / 16), command);
    const stereo = new Int16Array(2 * left.length);
    for (let i = 0; i < left.length; i++) [stereo[2 * i], stereo[2 * i + 1]] = [left[i]!, right[i] ?? 0];
    const bytes = bytesOf(stereo);
    const source = {
      filePath: await fileOf('stereo.raw', bytes),
      bytes: bytes.length,
      format: { ...LINEAR_16K, channels: 2 as const },
    };
    const apart = new Recogniser();
    await plane.listenToFile(optionsFor(apart, source, { channels: 'separate', minSplitMs: 2000 }));
    await apart.closed;
    expect(apart.utterances.map(({ channel }) => channel).toSorted()).toEqual([0, 1]);
    expect(new Set(apart.utterances.map(({ utteranceId }) => utteranceId)).size).toBe(2);
    const mixed = new Recogniser();
    const received = await plane.listenToFile(optionsFor(mixed, source, { minSplitMs: 30_000 }));
    await mixed.closed;
    expect(mixed.utterances.map(({ channel }) => channel)).toEqual([0]);
    expect(received.durationMs).toBe(left.length / 16);
  });

  it('reports a silent file', async () => {
    const bytes = new Uint8Array(80_000).fill(0xff);
    const filePath = await fileOf('silent.ulaw', bytes);
    const recogniser = new Recogniser();
    const received = await plane.listenToFile(
      optionsFor(recogniser, { filePath, bytes: bytes.length, format: MULAW_8K }),
    );
    expect(received).toEqual({ durationMs: 10_000, speechMs: 0, snrDb: null, utterances: 0, isSilent: true });
    await recogniser.closed;
    expect(recogniser.messages).toEqual([{ type: 'stream.end' }]);
  });

  it('stays at most a minute ahead of the recogniser, and continues when it catches up', async () => {
    const bytes = bytesOf(joined(...Array.from({ length: 6 }, () => sixSentences)));
    const filePath = await fileOf('long.raw', bytes);
    const recogniser = new Recogniser('never');
    const source = { filePath, bytes: bytes.length, format: LINEAR_16K };
    const listening = plane.listenToFile(optionsFor(recogniser, source));
    const minute = 60 * 16_000;
    await recogniser.until(({ samplesPosted }) => samplesPosted > minute);
    const pending = async (): Promise<number> => {
      const dump = (await plane.dump()) as { workers: { sessions: { untakenSamples: number }[] }[] };
      return dump.workers[0]!.sessions[0]!.untakenSamples;
    };
    const waiting = await pending();
    expect(waiting).toBeLessThan(minute + 2 * 5 * 16_000);
    expect(await pending()).toBe(waiting);
    recogniser.take(waiting);
    await recogniser.until(({ samplesPosted }) => samplesPosted > waiting);
    recogniser.take(minute * 10);
    expect((await listening).utterances).toBe(18);
  });

  it('stops when aborted and when the recogniser goes away', async () => {
    const bytes = bytesOf(joined(...Array.from({ length: 6 }, () => sixSentences)));
    const source = { filePath: await fileOf('stopped.raw', bytes), bytes: bytes.length, format: LINEAR_16K };
    const owner = new AbortController();
    const recogniser = new Recogniser('never');
    const listening = plane.listenToFile(optionsFor(recogniser, source, { signal: owner.signal }));
    const reason = new Error('the client left');
    await recogniser.until(({ utterances }) => utterances.length > 0);
    owner.abort(reason);
    await expect(listening).rejects.toBe(reason);
    await recogniser.closed;
    expect(recogniser.isEnded).toBe(false);
    const abandoned = new Recogniser('never');
    const rejected = plane.listenToFile(optionsFor(abandoned, source));
    await abandoned.until(({ utterances }) => utterances.length > 0);
    abandoned.close();
    await expect(rejected).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(plane.capacity().sessions).toBe(0);
  });

  it('reports a missing file without its path', async () => {
    const recogniser = new Recogniser();
    const source = { filePath: join(folder, 'nowhere.raw'), bytes: 10, format: LINEAR_16K };
    const refused = plane.listenToFile(optionsFor(recogniser, source));
    await expect(refused).rejects.toMatchObject({ code: 'INTERNAL', message: expect.stringContaining('ENOENT') });
    await expect(refused).rejects.not.toMatchObject({ message: expect.stringContaining(folder) });
    await recogniser.closed;
  });
});

describe('listening workers', () => {
  const FAULTY = new URL('./faulty-worker.ts', import.meta.url);

  it('report a crash to every session and file, and restart', async () => {
    const warn = vi.fn();
    await using faulty = disposable(createListeningPlane({ workers: 1, workerFile: FAULTY, logger: { warn } }));
    const first = await listenLive(faulty.plane);
    const second = await listenLive(faulty.plane);
    first.session.write(Uint8Array.from(Buffer.from('die now')));
    await Promise.all([first.untilEvent('listening.lost'), second.untilEvent('listening.lost')]);
    expect(first.events).toEqual([{ type: 'listening.lost', detail: expect.stringContaining('as asked') }]);
    await Promise.all([first.recogniser.closed, second.recogniser.closed]);
    await expect(second.session.finish()).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(warn).toHaveBeenCalledWith({ detail: expect.any(String), sessions: 2 }, 'listening worker lost');
    expect(faulty.plane.capacity().sessions).toBe(0);
    await eventually(() => expect(faulty.plane.capacity().workers).toBe(1));
    const third = await listenLive(faulty.plane);
    third.session.write(asMulaw8k(silence(200)));
    expect(await third.session.finish()).toMatchObject({ durationMs: 200 });
  });

  it('lose only the session that fails', async () => {
    const [broken, other] = [await listenLive(plane), await listenLive(plane)];
    broken.session.configure({ format: { ...MULAW_8K, sampleRateHz: 0.5 } });
    await broken.untilEvent('listening.lost');
    await broken.recogniser.closed;
    await expect(broken.session.finish()).rejects.toMatchObject({ code: 'INTERNAL' });
    other.session.write(new Uint8Array(8000));
    expect(await other.session.finish()).toMatchObject({ durationMs: 1000 });
    expect(plane.capacity()).toEqual({ sessions: 0, workers: 1 });
  });

  it('lose only the session with an invalid inlet message', async () => {
    const { port1, port2 } = new MessageChannel();
    const [broken, other] = [await listenLive(plane, { inlet: port1 }), await listenLive(plane)];
    port2.postMessage(null);
    await broken.untilEvent('listening.lost');
    expect(await other.session.finish()).toMatchObject({ durationMs: 0 });
    port2.close();
  });

  it('distribute sessions evenly', async () => {
    await using two = disposable(createListeningPlane({ workers: 2 }));
    await Promise.all(Array.from({ length: 4 }, () => listenLive(two.plane)));
    const { workers } = (await two.plane.dump()) as { workers: { sessions: unknown[] }[] };
    expect(workers.map(({ sessions }) => sessions.length)).toEqual([2, 2]);
  });

  it('start when warmed up or needed, and not after close', async () => {
    const warmed = createListeningPlane({ workers: 1 });
    expect(warmed.capacity().workers).toBe(0);
    warmed.warmUp();
    warmed.warmUp();
    expect(warmed.capacity().workers).toBe(1);
    await warmed.close();
    const needed = createListeningPlane({ workers: 1 });
    const { session } = await listenLive(needed);
    expect(needed.capacity()).toEqual({ sessions: 1, workers: 1 });
    await session.close();
    await needed.close();
    needed.warmUp();
    expect(needed.capacity().workers).toBe(0);
  });

  it('end when idle, never under a session, and start again when needed', async () => {
    await using idle = disposable(createListeningPlane({ workers: 1, idleMs: 1 }));
    idle.plane.warmUp();
    for (let round = 0; round < 2; round += 1) {
      await eventually(() => expect(idle.plane.capacity().workers).toBe(0));
      const { session } = await listenLive(idle.plane);
      writeInFrames(session, asMulaw8k(silence(1000)));
      expect(idle.plane.capacity()).toEqual({ sessions: 1, workers: 1 });
      expect(await session.finish()).toMatchObject({ durationMs: 1000 });
    }
    await eventually(() => expect(idle.plane.capacity().workers).toBe(0));
  });

  it('close with their sessions and accept no more', async () => {
    const closing = createListeningPlane({ workers: 1 });
    const { recogniser } = await listenLive(closing);
    await closing.close();
    await recogniser.closed;
    await expect(listenLive(closing)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    expect(closing.capacity()).toEqual({ sessions: 0, workers: 0 });
  });

  it('require a count of at least one', () => {
    expect(() => createListeningPlane({ workers: 0 })).toThrow(RangeError);
  });
});

function disposable<Plane extends ListeningPlane>(opened: Plane): AsyncDisposable & { plane: Plane } {
  return { plane: opened, [Symbol.asyncDispose]: () => opened.close() };
}
