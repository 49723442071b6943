import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { RecognitionEvent } from '../../../machines/utterances.ts';
import { createSpeechRecognition } from '../../../speech/recognition-host.ts';
import { Arrivals } from '../arrivals.ts';
import { spokenUtterances } from '../spoken.ts';

it('understands human speech with what comes with the installation', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tandem-recognition-'));
  const settings = { preferred: 'auto', processes: 1, modelsDir: folder, cacheDir: folder, upstream: null } as const;
  const recognition = await createSpeechRecognition({ settings });
  try {
    const events = new Arrivals<RecognitionEvent>();
    const stream = await recognition.open({
      streamId: 'a stream',
      mode: 'live',
      languages: ['en'],
      keywords: [],
      hypothesisEveryMs: 300,
      diarization: null,
      onEvent: (event) => events.push(event),
      signal: new AbortController().signal,
    });
    const { text, samples } = spokenUtterances().find(({ text: said }) => said === 'go forward ten meters')!;
    const endMs = 1000 + samples.length / 16;
    const { utterances: port } = stream;
    port.postMessage({ type: 'utterance.begin', utteranceId: 0, channel: 0, startMs: 1000 });
    for (let at = 0; at < samples.length; at += 1600) {
      port.postMessage({ type: 'utterance.audio', utteranceId: 0, samples: samples.slice(at, at + 1600) });
    }
    const summary = { channel: 0, startMs: 1000, endMs, speechMs: endMs - 1000, snrDb: 30 };
    port.postMessage({ type: 'utterance.end', utteranceId: 0, summary });
    port.postMessage({ type: 'stream.end' });
    await events.first(({ type }) => type === 'recognition.ended');
    const told = await events.first(({ type }) => type === 'utterance.recognised');
    expect(told).toMatchObject({ recognition: { text, language: 'en', model: stream.model } });
    const { words } = (told as Extract<RecognitionEvent, { type: 'utterance.recognised' }>).recognition;
    expect(words.map(({ word }) => word)).toEqual(text.split(' '));
    for (const [index, word] of words.entries()) {
      expect(word.startMs).toBeGreaterThanOrEqual(index === 0 ? 1000 : words[index - 1]!.startMs);
      expect(word.endMs).toBeLessThanOrEqual(endMs);
      expect(word.confidence).toBeGreaterThan(0);
    }
  } finally {
    await recognition.close();
    await rm(folder, { recursive: true, force: true });
  }
});
