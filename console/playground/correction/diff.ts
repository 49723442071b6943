/** Differences between two texts, word by word. */

export interface Change {
  kind: 'same' | 'removed' | 'added';
  text: string;
}

/** Beyond this many edits, shows one replacement. */
const MAX_EDITS = 2_000;

/** Returns changes: `same` and `removed` form `before`, `same` and `added` form `after`. */
export function differences(before: string, after: string): Change[] {
  const [old, now] = [tokensOf(before), tokensOf(after)];
  let start = 0;
  while (start < old.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const [oldMiddle, newMiddle] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  return merged([
    ...old.slice(0, start).map((text) => ({ kind: 'same' as const, text })),
    ...editsOf(oldMiddle, newMiddle),
    ...old.slice(old.length - end).map((text) => ({ kind: 'same' as const, text })),
  ]);
}

/** Words with inner apostrophes, runs of white space, and single other characters. */
function tokensOf(text: string): string[] {
  return text.match(/[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}\p{N}]+)*|\s+|./gsu) ?? [];
}

/** The shortest edit script: E. W. Myers, An O(ND) Difference Algorithm and Its Variations, 1986. */
function editsOf(old: readonly string[], now: readonly string[]): Change[] {
  const most = Math.min(old.length + now.length, MAX_EDITS);
  const reached = new Int32Array(2 * most + 3);
  const center = most + 1;
  const history: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits++) {
    history.push(reached.slice(center - edits - 1, center + edits + 2));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = nextOld(reached, center, { diagonal, edits });
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x++;
      reached[center + diagonal] = x;
      if (x >= old.length && x - diagonal >= now.length) return traced(history, old, now);
    }
  }
  return [
    { kind: 'removed', text: old.join('') },
    { kind: 'added', text: now.join('') },
  ];
}

/** Furthest position in the old text with one more edit: by an addition from above, or a removal from below. */
function nextOld(
  reached: Int32Array,
  center: number,
  { diagonal, edits }: { diagonal: number; edits: number },
): number {
  const [below, above] = [reached[center + diagonal - 1]!, reached[center + diagonal + 1]!];
  const isAddition = diagonal === -edits || (diagonal !== edits && below < above);
  return isAddition ? above : below + 1;
}

function traced(history: readonly Int32Array[], old: readonly string[], now: readonly string[]): Change[] {
  const changes: Change[] = [];
  let [x, y] = [old.length, now.length];
  for (let edits = history.length - 1; edits >= 0; edits--) {
    const reached = history[edits]!;
    const center = edits + 1;
    const diagonal = x - y;
    const [below, above] = [reached[center + diagonal - 1]!, reached[center + diagonal + 1]!];
    const isAddition = diagonal === -edits || (diagonal !== edits && below < above);
    const fromX = edits === 0 ? 0 : isAddition ? above : below;
    const fromY = edits === 0 ? 0 : fromX - (isAddition ? diagonal + 1 : diagonal - 1);
    while (x > fromX && y > fromY) {
      changes.push({ kind: 'same', text: old[--x]! });
      y--;
    }
    if (edits === 0) break;
    changes.push(isAddition ? { kind: 'added', text: now[--y]! } : { kind: 'removed', text: old[--x]! });
  }
  return changes.reverse();
}

/** Joins adjacent changes of a kind. Within a stretch without common words, removals come first. */
function merged(changes: readonly Change[]): Change[] {
  const joined: Change[] = [];
  let [removed, added] = ['', ''];
  const flush = () => {
    if (removed !== '') joined.push({ kind: 'removed', text: removed });
    if (added !== '') joined.push({ kind: 'added', text: added });
    [removed, added] = ['', ''];
  };
  for (const { kind, text } of changes) {
    if (kind === 'removed') removed += text;
    else if (kind === 'added') added += text;
    else {
      flush();
      const last = joined.at(-1);
      if (last?.kind === 'same') last.text += text;
      else joined.push({ kind, text });
    }
  }
  flush();
  return joined;
}
