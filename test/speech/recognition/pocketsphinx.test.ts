import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RecognitionEvent } from '../../../machines/utterances.ts';
import { createSpeechRecognition } from '../../../speech/speech-recognition.thread.ts';
import type { SpeechRecognition } from '../../../speech/speech-recognition.ts';
import { spokenUtterances } from '../spoken.ts';
import { Speaker } from './spoken-to-desk.ts';

type Recognised = Extract<RecognitionEvent, { type: 'utterance.recognised' }>;

const logged: string[] = [];
let folder: string;
let recognition: SpeechRecognition;

/** Processes of other test files. */
const others = new Set(allChildren());

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-recognition-'));
  const settings = { preferred: 'auto', processes: 1, modelsDir: folder, cacheDir: folder, upstream: null } as const;
  const logger = { warn: (_: object, message: string) => logged.push(message) };
  recognition = await createSpeechRecognition({ settings, logger });
});

afterAll(async () => {
  await recognition.close();
  expect(childProcesses()).toEqual([]);
  await rm(folder, { recursive: true, force: true });
});

async function open(): Promise<{ speaker: Speaker; model: string }> {
  let speaker: Speaker | null = null;
  const stream = await recognition.open({
    streamId: 'a stream',
    mode: 'live',
    languages: ['en'],
    keywords: [],
    hypothesisEveryMs: 300,
    diarization: null,
    onEvent: (event) => speaker?.events.push(event),
    signal: new AbortController().signal,
  });
  speaker = new Speaker(stream.utterances);
  return { speaker, model: stream.model };
}

function humanSpeech(): { text: string; seconds: Int16Array<ArrayBuffer>[] } {
  const { text, samples } = spokenUtterances().find(({ text: said }) => said === 'go forward ten meters')!;
  const starts = Array.from({ length: Math.ceil(samples.length / 16_000) }, (_, second) => second * 16_000);
  return { text, seconds: starts.map((start) => samples.slice(start, start + 16_000)) };
}

function childProcesses(): number[] {
  return allChildren().filter((pid) => !others.has(pid));
}

function allChildren(): number[] {
  return readdirSync('/proc/self/task').flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
}

describe('recognition without configuration', () => {
  it('recognises human speech with word times', async () => {
    const { speaker, model } = await open();
    const { text, seconds } = humanSpeech();
    const utteranceId = speaker.begin();
    for (const samples of seconds) speaker.post({ type: 'utterance.audio', utteranceId, samples });
    const endMs = 1000 * seconds.length;
    speaker.end(utteranceId, { endMs, speechMs: endMs });
    const event = (await speaker.events.first(({ type }) => type === 'utterance.recognised')) as Recognised;
    expect(event).toMatchObject({ recognition: { text, language: 'en', model } });
    const { words } = event.recognition;
    expect(words.map(({ word }) => word)).toEqual(text.split(' '));
    for (const [index, word] of words.entries()) {
      expect(word.startMs).toBeGreaterThanOrEqual(words[index - 1]?.endMs ?? 0);
      expect(word.endMs).toBeLessThanOrEqual(endMs);
      expect(word.confidence).toBeGreaterThan(0);
    }
  });

  it('loses nothing when its process is killed within an utterance', async () => {
    const { speaker } = await open();
    const { text, seconds } = humanSpeech();
    const [first, ...rest] = seconds;
    const utteranceId = speaker.begin();
    speaker.post({ type: 'utterance.audio', utteranceId, samples: first! });
    await expect.poll(async () => (await recognition.engines()).map(({ busy }) => busy)).toContain(1);
    const engines = childProcesses();
    expect(engines).toHaveLength(1);
    for (const pid of engines) process.kill(pid, 'SIGKILL');
    for (const samples of rest) speaker.post({ type: 'utterance.audio', utteranceId, samples });
    speaker.end(utteranceId, { speechMs: 1000 * seconds.length });
    speaker.hangUp();
    await speaker.events.first(({ type }) => type === 'recognition.ended');
    expect(speaker.outcomes).toEqual([[0, text]]);
    expect(logged).toEqual(['recognizer failed']);
  });
});
