import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { RecognitionEvent, UtteranceMessage, UtteranceSummary } from '../machines/utterances.ts';
import type { ListeningPlane } from '../media/listening-plane.ts';
import type { SpeechRecognition } from '../speech/speech-recognition.ts';
import type { Sample } from './speech-material.ts';

/** Runs samples through the production pipeline: listening workers, speech thread, engine processes. */

/** Recognises like `/ws/stt`, but faster than real time. Returns the text. */
export async function recogniseLive(
  plane: ListeningPlane,
  recognition: SpeechRecognition,
  sample: Sample,
): Promise<string> {
  return await recognised(recognition, 'live', sample, (utterances, signal) =>
    listen(plane, sample, utterances, signal),
  );
}

/** Recognises like `POST /stt`, from a file in `folder`. */
export async function recogniseBatch(
  plane: ListeningPlane,
  recognition: SpeechRecognition,
  sample: Sample,
  folder: string,
): Promise<string> {
  const filePath = join(folder, `${sample.name.replaceAll('/', '-')}.raw`);
  await writeFile(filePath, sample.bytes);
  return await recognised(recognition, 'batch', sample, async (utterances, signal) => {
    await plane.listenToFile({
      source: { filePath, offset: 0, bytes: sample.bytes.length, format: sample.format },
      channels: 'mixed',
      enhancement: 'off',
      minSplitMs: MIN_SPLIT_MS,
      utterances,
      signal,
    });
  });
}

/** Returns the utterances that the voice detector would send to an engine. Needs no engine. */
export async function utterancesIn(plane: ListeningPlane, sample: Sample): Promise<UtteranceSummary[]> {
  const { port1, port2 } = new MessageChannel();
  const summaries: UtteranceSummary[] = [];
  const ended = new Promise<void>((resolve) => {
    port1.on('message', (message: UtteranceMessage) => {
      if (message.type === 'utterance.end') summaries.push(message.summary);
      if (message.type === 'stream.end') resolve();
    });
  });
  await listen(plane, sample, port2, AbortSignal.timeout(LONGEST_MS));
  await ended;
  port1.close();
  return summaries;
}

const LONGEST_MS = 120_000;
/** Defaults of the API. */
const MIN_SPLIT_MS = 20_000;
const UTTERANCE_END_MS = 1_000;

async function listen(
  plane: ListeningPlane,
  sample: Sample,
  utterances: MessagePort,
  signal: AbortSignal,
): Promise<void> {
  const session = await plane.open({
    sessionId: sample.name,
    format: sample.format,
    utteranceEndMs: UTTERANCE_END_MS,
    enhancement: 'off',
    utterances,
    onEvent: () => {},
    signal,
  });
  session.write(sample.bytes.slice());
  await session.finish();
  await session.close();
}

async function recognised(
  recognition: SpeechRecognition,
  mode: 'live' | 'batch',
  sample: Sample,
  hear: (utterances: MessagePort, signal: AbortSignal) => Promise<void>,
): Promise<string> {
  const signal = AbortSignal.timeout(LONGEST_MS);
  const texts: string[] = [];
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => reject(signal.reason));
  const onEvent = (event: RecognitionEvent) => {
    if (event.type === 'utterance.recognised') texts.push(event.recognition.text);
    if (event.type === 'recognition.ended') resolve();
    if (event.type === 'recognition.failed') reject(new Error(event.message));
    if (event.type === 'recognition.overloaded') reject(new Error('overloaded'));
  };
  const stream = await recognition.open({
    streamId: sample.name,
    mode,
    languages: ['en'],
    keywords: [],
    hypothesisEveryMs: null,
    diarization: null,
    onEvent,
    signal,
  });
  try {
    await Promise.all([hear(stream.utterances, signal), ended]);
  } finally {
    stream.close();
  }
  return texts.join(' ');
}
