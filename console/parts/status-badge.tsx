import { Badge } from '@mantine/core';

/** Tones by meaning, not by color: a badge always has text too. */
export type Tone = 'good' | 'active' | 'warning' | 'bad' | 'neutral';

const COLORS: Record<Tone, string> = { good: 'green', active: 'blue', warning: 'yellow', bad: 'red', neutral: 'gray' };

export function StatusBadge({ tone, children }: { tone: Tone; children: string }) {
  return (
    <Badge
      color={COLORS[tone]}
      variant={tone === 'neutral' ? 'default' : 'light'}
      radius="sm"
      tt="none"
      className="status-badge"
      data-tone={tone}
    >
      {children}
    </Badge>
  );
}
