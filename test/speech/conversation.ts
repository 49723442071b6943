import type { RecognisedWord } from '../../machines/utterances.ts';
import { createDiarizer, type DiarizerOptions, relabelled } from '../../speech/diarization/diarizer.ts';
import { type SpokenUtterance, spokenUtterances } from './spoken.ts';

/** Conversations made of utterances of known people, and how many words diarisation gives to somebody else. */

/** A stretch of one voice. */
type Spoken = { who: string; samples: Int16Array };
/** A word and who really said it. */
type Heard = { who: string; word: RecognisedWord };

export const ANY_NUMBER = { minSpeakers: null, maxSpeakers: null };

/** A word every quarter of a second, with who really said it. */
export async function hear(utterances: Spoken[][], options: Partial<DiarizerOptions> & Pick<DiarizerOptions, 'mode'>) {
  const diarizer = createDiarizer({ ...ANY_NUMBER, ...options });
  const heard: Heard[] = [];
  let startMs = 0;
  for (const parts of utterances) {
    const samples = joined(parts.map((part) => part.samples));
    const truth: Heard[] = [];
    let partMs = startMs;
    for (const part of parts) {
      const lengthMs = part.samples.length / 16;
      for (let atMs = 0; atMs < lengthMs - 250; atMs += 250) truth.push({ who: part.who, word: wordAt(partMs + atMs) });
      partMs += lengthMs;
    }
    const words = await diarizer.label({ samples, startMs, words: truth.map(({ word }) => word) });
    heard.push(...words.map((word, index) => ({ who: truth[index]!.who, word })));
    startMs += samples.length / 16 + 1_000;
  }
  if (options.mode === 'live') return heard;
  const words = relabelled(
    heard.map(({ word }) => word),
    diarizer.finish(),
  );
  return heard.map(({ who }, index) => ({ who, word: words[index]! }));
}

function joined(parts: readonly Int16Array[]): Int16Array {
  const whole = new Int16Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function wordAt(startMs: number): RecognisedWord {
  return { word: 'a', startMs, endMs: startMs + 250, confidence: null, speaker: null, original: null };
}

export function namesIn(heard: readonly Heard[]): string[] {
  return [...new Set(heard.map(({ word }) => word.speaker ?? 'nobody'))];
}

/** Share of words that are not called what their speaker is mostly called, each name being one speaker's. */
export function errorRate(heard: readonly Heard[]): number {
  const counts = new Map<string, number>();
  for (const { who, word } of heard) {
    const key = JSON.stringify([who, word.speaker]);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const taken = new Set<string>();
  let right = 0;
  for (const [key, count] of [...counts].toSorted((a, b) => b[1] - a[1])) {
    const [who, name] = JSON.parse(key) as [string, string];
    if (taken.has(`who ${who}`) || taken.has(`name ${name}`)) continue;
    taken.add(`who ${who}`).add(`name ${name}`);
    right += count;
  }
  return 1 - right / heard.length;
}

/** Everybody's first utterance, everybody's second, ... */
export function alternating(voices: Record<string, Int16Array[]>): Spoken[][] {
  const longest = Math.max(...Object.values(voices).map((samples) => samples.length));
  return Array.from({ length: longest }, (_, turn) =>
    Object.entries(voices).flatMap(([who, utterances]) =>
      utterances[turn] === undefined ? [] : [[{ who, samples: utterances[turn] }]],
    ),
  ).flat();
}

export function samplesOf(voice: SpokenUtterance['voice']): Int16Array[] {
  return spokenUtterances()
    .filter((utterance) => utterance.voice === voice)
    .map(({ samples }) => samples);
}

/** Played slower or faster, which makes the throat longer or shorter. */
export function atSpeed(samples: Int16Array, speed: number): Int16Array {
  return Int16Array.from({ length: Math.floor((samples.length - 1) / speed) }, (_, index) => {
    const at = index * speed;
    const before = Math.floor(at);
    return samples[before]! + (at - before) * (samples[before + 1]! - samples[before]!);
  });
}
