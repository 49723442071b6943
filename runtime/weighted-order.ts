interface Weighted {
  /** Lower ones come first. */
  priority: number;
  weight: number;
}

/**
 * Orders servers as in RFC 2782: by priority, and randomly by weight within one priority.
 * @param random like `Math.random`
 */
export function orderByWeight<T extends Weighted>(servers: readonly T[], random: () => number): T[] {
  const priorities = [...new Set(servers.map(({ priority }) => priority))].sort((a, b) => a - b);
  return priorities.flatMap((wanted) =>
    byWeight(
      servers.filter(({ priority }) => priority === wanted),
      random,
    ),
  );
}

function byWeight<T extends Weighted>(servers: readonly T[], random: () => number): T[] {
  const left = [...servers];
  const ordered: T[] = [];
  while (left.length > 0) {
    const sum = left.reduce((total, { weight }) => total + weight, 0);
    // Servers of weight 0 come last, in random order.
    const shareOf = ({ weight }: T) => (sum === 0 ? 1 : weight);
    const drawn = random() * (sum === 0 ? left.length : sum);
    let running = 0;
    const index = left.findIndex((server) => {
      running += shareOf(server);
      return running > drawn;
    });
    ordered.push(...left.splice(Math.max(0, index), 1));
  }
  return ordered;
}
