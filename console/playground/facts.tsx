import { Group, Text } from '@mantine/core';
import { money } from '../parts/format.ts';
import { playgroundText } from '../text/playground.ts';
import type { Charge } from './charged.ts';

export type Fact = readonly [label: string, value: string, hint?: string];

/** Numbers under a result, such as its cost. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <Group component="dl" gap="lg" m={0} px="md" py="xs" className="result-facts" aria-live="polite">
      {facts.map(([label, value, hint]) => (
        <div key={label} title={hint}>
          <Text component="dt" size="xs" c="dimmed">
            {label}
          </Text>
          <Text component="dd" size="sm" m={0} className="tabular">
            {value}
          </Text>
        </div>
      ))}
    </Group>
  );
}

export function factsOf({ usd, tookMs }: Charge): Fact[] {
  const cost = usd === null ? [] : [[playgroundText.cost, costOf(usd)] as const];
  return [...cost, [playgroundText.took, playgroundText.ms(tookMs)]];
}

export function costOf(usd: number): string {
  return usd === 0 ? playgroundText.free : money(usd);
}
