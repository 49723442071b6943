import { FRAME_MS } from './mfcc.ts';
import type { Voice } from './voice.ts';

/**
 * Groups voices by speaker. Returns each voice's group, numbered from 0 in the order of first appearance. Short voices
 * form no group of their own; they join the most similar one.
 */
export function groupVoices<Kind extends Voice<Kind>>(voices: readonly Kind[], limits: GroupLimits): number[] {
  const long = voices.filter(({ frames }) => frames >= LEAST_FRAMES);
  const groups = clusters(long.length > 0 ? long : voices, limits);
  return numbered(
    voices.map((voice) => {
      const own = groups.findIndex(({ members }) => members.includes(voice));
      return own >= 0 ? own : nearestTo(voice, groups);
    }),
  );
}

export interface GroupLimits {
  min: number;
  max: number;
  /** Two groups this similar are joined even if fewer than `min` remain; 0 for never. */
  alikeDespiteMin: number;
}

/** A second. */
const LEAST_FRAMES = 1_000 / FRAME_MS;
/** Threshold between groups that clustering formed; random stretches of one voice are more similar. */
const DIFFERENT_GROUPS = 1.3;

/** Agglomerative clustering: joins the two most similar groups until all that remain are different. */
function clusters<Kind extends Voice<Kind>>(
  voices: readonly Kind[],
  { min, max, alikeDespiteMin }: GroupLimits,
): Group<Kind>[] {
  const groups: (Group<Kind> | null)[] = voices.map((voice) => ({ voice, members: [voice] }));
  const count = voices.length;
  const distances = new Float64Array(count * count);
  const measure = (a: number, b: number) => {
    distances[Math.max(a, b) * count + Math.min(a, b)] = groups[a]!.voice.distanceTo(groups[b]!.voice);
  };
  for (let a = 1; a < count; a++) for (let b = 0; b < a; b++) measure(a, b);
  for (let left = count; left > 1; left--) {
    const { a, b, distance } = closest(groups, distances);
    if (left <= max && distance >= (left > min ? DIFFERENT_GROUPS : alikeDespiteMin)) break;
    groups[b] = {
      voice: groups[b]!.voice.joinedWith(groups[a]!.voice),
      members: [...groups[b]!.members, ...groups[a]!.members],
    };
    groups[a] = null;
    for (let other = 0; other < count; other++) if (other !== b && groups[other] !== null) measure(b, other);
  }
  return groups.filter((group) => group !== null);
}

interface Group<Kind> {
  voice: Kind;
  members: Kind[];
}

function closest(groups: readonly unknown[], distances: Float64Array): { a: number; b: number; distance: number } {
  let best = { a: -1, b: -1, distance: Number.POSITIVE_INFINITY };
  for (let a = 1; a < groups.length; a++) {
    if (groups[a] === null) continue;
    for (let b = 0; b < a; b++) {
      const distance = distances[a * groups.length + b]!;
      if (groups[b] !== null && distance < best.distance) best = { a, b, distance };
    }
  }
  return best;
}

function nearestTo<Kind extends Voice<Kind>>(voice: Kind, groups: readonly Group<Kind>[]): number {
  const distances = groups.map((group) => group.voice.distanceTo(voice));
  return distances.indexOf(Math.min(...distances));
}

/** Renumbers the groups in order of appearance. */
function numbered(groups: readonly number[]): number[] {
  const numbers = new Map<number, number>();
  for (const group of groups) if (!numbers.has(group)) numbers.set(group, numbers.size);
  return groups.map((group) => numbers.get(group)!);
}
