import type { SpokenWord, WordMark } from '../synthesizer.ts';
import type { ScriptWord } from '../text/script.ts';
import type { Sound } from './sounds.ts';
import { spokenLength } from './spoken-length.ts';

export interface AlignableClause {
  words: readonly ScriptWord[];
  /** From the engine: in any order, for some words or none. */
  marks: readonly WordMark[];
  /** In order, without overlap. */
  sounds: readonly Sound[];
  durationMs: number;
}

/**
 * Computes the time of each word of a clause, in order, without overlap, within the clause. A word starts at its mark,
 * or the sound next to it. Without marks, sound is distributed by the length of the words, and words start with nearby
 * sounds. A word ends with its last sound. Silent words have no duration.
 */
export function alignWords({ words, marks, sounds, durationMs }: AlignableClause): SpokenWord[] {
  const lengths = words.map(spokenLength);
  const starts = anchorsOf({ words, marks, sounds, durationMs });
  const said = words.flatMap((_, index) => (lengths[index]! > 0 || starts[index] !== null ? [index] : []));
  fillIn({ said, starts, lengths, sounds, durationMs });
  const times: SpokenWord[] = [];
  let endMs = 0;
  let next = 0;
  for (const [index, { written }] of words.entries()) {
    if (said[next] !== index) {
      // Silent words before the first spoken one get its start.
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

/** A mark refers to a sound that starts at most this long before it. */
const MARK_LATE_BY_MS = 40;
/** A word without a mark moves to the start of a sound at most this much sound away. */
const MOST_SHIFT_MS = 120;

/** Starts of words with marks; null for others, and for marks out of order. */
function anchorsOf({ words, marks, sounds, durationMs }: AlignableClause): (number | null)[] {
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
 * The longest series of words with increasing marks: engines that say a currency after its amount mark words out of
 * order. By patience sorting.
 */
function inOrder(marks: readonly (number | null)[]): number[] {
  /** For each length, the last word of such a series with the earliest mark. */
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
  /** Indices of the spoken words. */
  said: readonly number[];
  /** Completed for all of them. */
  starts: (number | null)[];
  lengths: readonly number[];
  sounds: readonly Sound[];
  durationMs: number;
}

function fillIn({ said, starts, lengths, sounds, durationMs }: Estimated): void {
  let place = 0;
  while (place < said.length) {
    // Up to the next word with a mark.
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
  const audible = inside.length > 0 ? inside : [{ startMs: fromMs, endMs: toMs }];
  const soundMs = audible.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
  // A mark proves that a word of zero length is spoken.
  const weights = group.map((word) => Math.max(lengths[word]!, LEAST_LENGTH));
  const msPerLength = soundMs / weights.reduce((sum, weight) => sum + weight, 0);
  let spentMs = 0;
  let previousMs = starts[group[0]!]!;
  for (const [place, word] of group.entries()) {
    if (place > 0) {
      const reachMs = Math.min(MOST_SHIFT_MS, (Math.min(weights[place]!, weights[place - 1]!) * msPerLength) / 2);
      const startMs = timeOf(spentMs, { audible, reachMs });
      previousMs = Math.min(Math.max(startMs, previousMs), toMs);
      starts[word] = previousMs;
    }
    spentMs += weights[place]! * msPerLength;
  }
}

const LEAST_LENGTH = 0.5;

/** The time after this much sound, or the start of a sound at about that point. */
function timeOf(spentMs: number, { audible, reachMs }: { audible: readonly Sound[]; reachMs: number }): number {
  let atMs: number | null = null;
  let nearest: number | null = null;
  let distanceMs = reachMs;
  let beforeMs = 0;
  for (const [index, { startMs, endMs }] of audible.entries()) {
    // A word already starts with the first sound.
    if (index > 0 && Math.abs(beforeMs - spentMs) <= distanceMs) {
      distanceMs = Math.abs(beforeMs - spentMs);
      nearest = startMs;
    }
    const lengthMs = endMs - startMs;
    if (atMs === null && spentMs < beforeMs + lengthMs) atMs = startMs + spentMs - beforeMs;
    beforeMs += lengthMs;
  }
  return nearest ?? atMs ?? audible.at(-1)!.endMs;
}

function lastSoundBefore(limitMs: number, { startMs, sounds }: { startMs: number; sounds: readonly Sound[] }): number {
  const last = sounds.findLast((sound) => sound.startMs < limitMs);
  return last === undefined || last.endMs <= startMs ? limitMs : Math.min(last.endMs, limitMs);
}
