/** Returns `, did you mean X?` for the known name with the fewest typing mistakes; '' if none is close. */
export function didYouMean(typed: string, known: readonly string[]): string {
  const [nearest] = known
    .map((name) => ({ name, mistakes: mistakesBetween(typed.toLowerCase(), name) }))
    .filter(({ name, mistakes }) => mistakes <= Math.max(1, Math.floor(name.length / 3)))
    .sort((a, b) => a.mistakes - b.mistakes);
  return nearest === undefined ? '' : `, did you mean ${nearest.name}?`;
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function mistakesBetween(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? rows[i - 2]![j - 2]! + 1 : Infinity;
      row.push(Math.min(replaced, swapped, row[j - 1]! + 1, rows[i - 1]![j]! + 1));
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
