import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import './facts.css';

export interface Fact {
  label: string;
  value: ReactNode;
}

/** Labels and values, side by side where there is room. */
export function Facts({ facts, columns }: { facts: readonly Fact[]; columns?: 'one' }) {
  return (
    <dl className="facts" data-columns={columns}>
      {facts.map(({ label, value }) => (
        <div key={label}>
          <Text component="dt" size="xs" c="dimmed">
            {label}
          </Text>
          <Text component="dd" size="sm" m={0}>
            {value}
          </Text>
        </div>
      ))}
    </dl>
  );
}
