import type { SpokenWord, WordMark } from '../synthesizer.ts';
import type { ScriptWord } from '../text/script.ts';
import type { Sound } from './sounds.ts';
import { spokenLength } from './spoken-length.ts';

export interface HeardClause {
  words: readonly ScriptWord[];
  /** As the engine gave them: in any order, for some words or none. */
  marks: readonly WordMark[];
  /** In order, apart from each other. */
  sounds: readonly Sound[];
  durationMs: number;
}

/**
 * When each word of a clause is heard: one entry for each, in order, none before the one in front of it has ended, all
 * inside the clause. A word begins at its mark, or the sound next to it; where the engine gave none, sound is shared
 * out by the length of the words, and words begin with a sound where one begins nearby. It ends with its last sound.
 * What is not said has no length.
 */
export function alignWords({ words, marks, sounds, durationMs }: HeardClause): SpokenWord[] {
  const lengths = words.map(spokenLength);
  const starts = anchorsOf({ words, marks, sounds, durationMs });
  const said = words.flatMap((_, index) => (lengths[index]! > 0 || starts[index] !== null ? [index] : []));
  fillIn({ said, starts, lengths, sounds, durationMs });
  const times: SpokenWord[] = [];
  let endMs = 0;
  let next = 0;
  for (const [index, { written }] of words.entries()) {
    if (said[next] !== index) {
      // Of those in front of the first word that is said, nothing is heard before it.
      const atMs = next === 0 ? (starts[said[0] ?? -1] ?? 0) : endMs;
      times.push({ word: written, startMs: atMs, endMs: atMs });
      continue;
    }
    next += 1;
    const startMs = starts[index]!;
    endMs = lastSoundBefore(starts[said[next] ?? -1] ?? durationMs, { startMs, sounds });
    times.push({ word: written, startMs, endMs });
  }
  return times;
}

/** A sound that begins so shortly before a mark is meant by it. */
const MARK_LATE_BY_MS = 40;
/** A word that nobody marked is moved to the beginning of a sound that is so much sound away at most. */
const MOST_SHIFT_MS = 120;

/** Where words begin that have a mark; null for the others, and for those whose marks are out of order. */
function anchorsOf({ words, marks, sounds, durationMs }: HeardClause): (number | null)[] {
  const first: (number | null)[] = words.map(() => null);
  for (const { word, atMs } of marks) {
    if (word in first && Number.isFinite(atMs)) first[word] = Math.min(first[word] ?? durationMs, Math.max(0, atMs));
  }
  const marked = inOrder(first);
  const anchors: (number | null)[] = words.map(() => null);
  let previousMs = -1;
  for (const [place, word] of marked.entries()) {
    const atMs = first[word]!;
    const nextMs = first[marked[place + 1] ?? -1] ?? durationMs;
    const near = sounds.find(({ endMs }) => endMs > atMs)?.startMs ?? atMs;
    const isMeant = near > atMs ? near < nextMs : atMs - near <= MARK_LATE_BY_MS && near > previousMs;
    const startMs = Math.max(isMeant ? near : atMs, previousMs, 0);
    anchors[word] = startMs;
    previousMs = startMs;
  }
  return anchors;
}

/**
 * The words of the longest series in which later words have later marks: engines that say a currency after its amount
 * mark them so. By patience sorting.
 */
function inOrder(marks: readonly (number | null)[]): number[] {
  /** For each length, the word that such a series ends with, the earliest by its mark. */
  const ends: number[] = [];
  const before: number[] = [];
  for (const [word, atMs] of marks.entries()) {
    if (atMs === null) continue;
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (marks[ends[middle]!]! <= atMs) low = middle + 1;
      else high = middle;
    }
    before[word] = ends[low - 1] ?? -1;
    ends[low] = word;
  }
  const series: number[] = [];
  for (let word = ends.at(-1) ?? -1; word >= 0; word = before[word]!) series.push(word);
  return series.reverse();
}

interface Estimated {
  /** Indices of the words that are heard. */
  said: readonly number[];
  /** Filled in for all of them. */
  starts: (number | null)[];
  lengths: readonly number[];
  sounds: readonly Sound[];
  durationMs: number;
}

function fillIn({ said, starts, lengths, sounds, durationMs }: Estimated): void {
  let place = 0;
  while (place < said.length) {
    // Up to the next word that has a mark.
    let end = place + 1;
    while (end < said.length && starts[said[end]!] === null) end += 1;
    const group = said.slice(place, end);
    const fromMs = starts[group[0]!] ?? Math.min(sounds[0]?.startMs ?? 0, durationMs);
    const toMs = starts[said[end] ?? -1] ?? durationMs;
    shareOut(group, { fromMs: Math.min(fromMs, toMs), toMs, starts, lengths, sounds });
    place = end;
  }
}

function shareOut(
  group: readonly number[],
  {
    fromMs,
    toMs,
    starts,
    lengths,
    sounds,
  }: { fromMs: number; toMs: number; starts: (number | null)[]; lengths: readonly number[]; sounds: readonly Sound[] },
): void {
  starts[group[0]!] ??= fromMs;
  if (group.length === 1) return;
  const inside = sounds
    .map(({ startMs, endMs }) => ({ startMs: Math.max(startMs, fromMs), endMs: Math.min(endMs, toMs) }))
    .filter(({ startMs, endMs }) => startMs < endMs);
  const heard = inside.length > 0 ? inside : [{ startMs: fromMs, endMs: toMs }];
  const heardMs = heard.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
  // A mark says that a word is heard that seems to have no length.
  const weights = group.map((word) => Math.max(lengths[word]!, LEAST_LENGTH));
  const msPerLength = heardMs / weights.reduce((sum, weight) => sum + weight, 0);
  let spentMs = 0;
  let previousMs = starts[group[0]!]!;
  for (const [place, word] of group.entries()) {
    if (place > 0) {
      const reachMs = Math.min(MOST_SHIFT_MS, (Math.min(weights[place]!, weights[place - 1]!) * msPerLength) / 2);
      const startMs = timeOf(spentMs, { heard, reachMs });
      previousMs = Math.min(Math.max(startMs, previousMs), toMs);
      starts[word] = previousMs;
    }
    spentMs += weights[place]! * msPerLength;
  }
}

const LEAST_LENGTH = 0.5;

/** When so much sound has been heard, or where a sound begins that is hardly more or less of it away. */
function timeOf(spentMs: number, { heard, reachMs }: { heard: readonly Sound[]; reachMs: number }): number {
  let atMs: number | null = null;
  let nearest: number | null = null;
  let distanceMs = reachMs;
  let beforeMs = 0;
  for (const [index, { startMs, endMs }] of heard.entries()) {
    // Where the first sound begins there is a word already.
    if (index > 0 && Math.abs(beforeMs - spentMs) <= distanceMs) {
      distanceMs = Math.abs(beforeMs - spentMs);
      nearest = startMs;
    }
    const lengthMs = endMs - startMs;
    if (atMs === null && spentMs < beforeMs + lengthMs) atMs = startMs + spentMs - beforeMs;
    beforeMs += lengthMs;
  }
  return nearest ?? atMs ?? heard.at(-1)!.endMs;
}

function lastSoundBefore(limitMs: number, { startMs, sounds }: { startMs: number; sounds: readonly Sound[] }): number {
  const last = sounds.findLast((sound) => sound.startMs < limitMs);
  return last === undefined || last.endMs <= startMs ? limitMs : Math.min(last.endMs, limitMs);
}
