import type { Gateway } from '../storage/queries/trunk-gateways.ts';

/**
 * The order in which gateways are tried (RFC 2782): by priority, and at random by weight among those of one priority.
 * @param random like `Math.random`
 */
export function orderGateways<T extends Pick<Gateway, 'priority' | 'weight'>>(
  gateways: readonly T[],
  random: () => number,
): T[] {
  const priorities = [...new Set(gateways.map(({ priority }) => priority))].sort((a, b) => a - b);
  return priorities.flatMap((wanted) =>
    byWeight(
      gateways.filter(({ priority }) => priority === wanted),
      random,
    ),
  );
}

function byWeight<T extends Pick<Gateway, 'weight'>>(gateways: readonly T[], random: () => number): T[] {
  const left = [...gateways];
  const ordered: T[] = [];
  while (left.length > 0) {
    const sum = left.reduce((total, { weight }) => total + weight, 0);
    // Those of weight 0 are for when no other is left; among themselves they are equal.
    const shareOf = ({ weight }: T) => (sum === 0 ? 1 : weight);
    const drawn = random() * (sum === 0 ? left.length : sum);
    let running = 0;
    const index = left.findIndex((gateway) => {
      running += shareOf(gateway);
      return running > drawn;
    });
    ordered.push(...left.splice(Math.max(0, index), 1));
  }
  return ordered;
}
