import { useComputedColorScheme } from '@mantine/core';
import { useElementSize, useMergedRef } from '@mantine/hooks';
import { useEffect, useMemo, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './line-chart.css';

export interface LineSeries {
  label: string;
  color: { light: string; dark: string };
  /** One per time of the chart: null breaks the line, undefined continues it. */
  values: (number | null | undefined)[];
}

interface LineChartProps {
  /** Accessible name of the chart. */
  label: string;
  timeLabel: string;
  /** Unix seconds, in order. */
  times: number[];
  series: LineSeries[];
  /** Fixed range of the vertical axis. Default: zero to the highest value. */
  range?: [number, number];
  format: (value: number) => string;
  heightPx?: number;
}

const INK = { light: { text: '#5c636a', grid: '#e9ecef' }, dark: { text: '#a6adb4', grid: '#373a40' } };

/** Lines over time. Lazy-load it, because it includes a chart library. */
export default function LineChart({ label, timeLabel, times, series, range, format, heightPx = 160 }: LineChartProps) {
  const { ref: measured, width } = useElementSize<HTMLDivElement>();
  const host = useRef<HTMLDivElement>(null);
  const ref = useMergedRef(measured, host);
  const scheme = useComputedColorScheme('light');
  const data = useMemo<uPlot.AlignedData>(() => [times, ...series.map(({ values }) => values)], [times, series]);
  useEffect(() => {
    if (width === 0 || host.current === null) return;
    const ink = INK[scheme];
    const axis = { stroke: ink.text, grid: { stroke: ink.grid, width: 1 }, ticks: { stroke: ink.grid, width: 1 } };
    const chart = new uPlot(
      {
        width,
        height: heightPx,
        cursor: { y: false },
        scales: { y: { range: range ?? ((_, __, max) => [0, Math.max(max * 1.1, 1)]) } },
        axes: [axis, { ...axis, size: 44, values: (_, splits) => splits.map(format) }],
        series: [
          { label: timeLabel },
          ...series.map(({ label: name, color }) => ({
            label: name,
            stroke: color[scheme],
            width: 1.5,
            spanGaps: false,
            value: (_: uPlot, value: number | null) => (value == null ? '–' : format(value)),
          })),
        ],
      },
      data,
      host.current,
    );
    return () => chart.destroy();
  }, [data, format, heightPx, range, scheme, series, timeLabel, width]);
  return (
    <figure className="line-chart" role="img" aria-label={label}>
      <div ref={ref} />
    </figure>
  );
}
