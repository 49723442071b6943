import { Group, Text, Tooltip } from '@mantine/core';
import './day-bars.css';

interface Bar {
  /** Unique among the bars. */
  key: string;
  /** The hour or day. */
  name: string;
  value: number;
  /** Shown while the pointer is over the bar. */
  hint: string;
}

interface DayBarsProps {
  bars: readonly Bar[];
  /** Describes the chart to screen readers, with its greatest value. */
  label: (most: number) => string;
  heightPx?: number;
}

/** One bar for each hour or day of a period. */
export function DayBars({ bars, label, heightPx = 140 }: DayBarsProps) {
  const most = Math.max(0, ...bars.map(({ value }) => value));
  return (
    <>
      <div className="day-bars" role="img" aria-label={label(most)} style={{ height: heightPx }}>
        {bars.map(({ key, value, hint }) => (
          <Tooltip key={key} label={hint}>
            <div className="day-bar-slot">
              <div className="day-bar" style={{ height: `${most > 0 ? (Math.max(0, value) / most) * 100 : 0}%` }} />
            </div>
          </Tooltip>
        ))}
      </div>
      <Group justify="space-between" mt={4}>
        {[bars[0], bars.at(-1)].map((bar, index) => (
          <Text key={index === 0 ? 'first' : 'last'} size="xs" c="dimmed">
            {bar?.name}
          </Text>
        ))}
      </Group>
    </>
  );
}
