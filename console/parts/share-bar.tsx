import { Text } from '@mantine/core';
import './share-bar.css';

interface ShareBarProps {
  label?: string;
  /** 0 to 1. Null has no bar. */
  value: number | null;
  text: string;
  tone?: 'warning' | 'bad' | undefined;
}

export function ShareBar({ label, value, text, tone }: ShareBarProps) {
  return (
    <div className="share">
      <Text size="xs" c="dimmed" className="tabular">
        {label === undefined ? text : `${label}: ${text}`}
      </Text>
      <div className="share-bar" data-tone={tone} aria-hidden>
        {value !== null && <div style={{ width: `${100 * Math.max(0, Math.min(1, value))}%` }} />}
      </div>
    </div>
  );
}
