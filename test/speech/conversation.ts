import type { RecognisedWord } from '../../machines/utterances.ts';
import { createDiarizer, type DiarizerOptions, relabelled } from '../../speech/diarization/diarizer.ts';
import { type SpokenUtterance, spokenUtterances } from './spoken.ts';

/** Conversations composed of utterances of known speakers, to measure diarisation errors. */

type Spoken = { who: string; samples: Int16Array };
type LabelledWord = { who: string; word: RecognisedWord };

export const ANY_NUMBER = { minSpeakers: null, maxSpeakers: null };

/** Diarises the audio with a word every 250 ms, and returns the words with their actual speakers. */
export async function diarizeWords(
  utterances: Spoken[][],
  options: Partial<DiarizerOptions> & Pick<DiarizerOptions, 'mode'>,
) {
  const diarizer = createDiarizer({ ...ANY_NUMBER, ...options });
  const labelled: LabelledWord[] = [];
  let startMs = 0;
  for (const parts of utterances) {
    const samples = joined(parts.map((part) => part.samples));
    const truth: LabelledWord[] = [];
    let partMs = startMs;
    for (const part of parts) {
      const lengthMs = part.samples.length / 16;
      for (let atMs = 0; atMs < lengthMs - 250; atMs += 250) truth.push({ who: part.who, word: wordAt(partMs + atMs) });
      partMs += lengthMs;
    }
    const words = await diarizer.label({ samples, startMs, words: truth.map(({ word }) => word) });
    labelled.push(...words.map((word, index) => ({ who: truth[index]!.who, word })));
    startMs += samples.length / 16 + 1_000;
  }
  if (options.mode === 'live') return labelled;
  const words = relabelled(
    labelled.map(({ word }) => word),
    diarizer.finish(),
  );
  return labelled.map(({ who }, index) => ({ who, word: words[index]! }));
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

export function namesIn(labelled: readonly LabelledWord[]): string[] {
  return [...new Set(labelled.map(({ word }) => word.speaker ?? 'nobody'))];
}

/** Share of words with a wrong label, where each label belongs to the speaker who has it most often. */
export function errorRate(labelled: readonly LabelledWord[]): number {
  const counts = new Map<string, number>();
  for (const { who, word } of labelled) {
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
  return 1 - right / labelled.length;
}

/** The first utterance of each speaker, then the second, and so on. */
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

/** Resamples, which scales the pitch and simulates another vocal tract length. */
export function atSpeed(samples: Int16Array, speed: number): Int16Array {
  return Int16Array.from({ length: Math.floor((samples.length - 1) / speed) }, (_, index) => {
    const at = index * speed;
    const before = Math.floor(at);
    return samples[before]! + (at - before) * (samples[before + 1]! - samples[before]!);
  });
}
