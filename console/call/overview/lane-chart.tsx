import { Text } from '@mantine/core';
import { duration, timeOfDay } from '../../parts/format.ts';
import { overviewText } from '../../text/call.ts';
import { roleText } from '../../text/call-words.ts';
import type { Lane } from './lanes.ts';
import './lane-chart.css';

/** One bar per leg: dialed, ringing, connected, on hold. */
export function LaneChart({ lanes }: { lanes: readonly Lane[] }) {
  const spans = lanes.flatMap((lane) => lane.spans);
  if (spans.length === 0) return null;
  const startMs = Math.min(...spans.map(({ fromMs }) => fromMs));
  const endMs = Math.max(...spans.map(({ toMs }) => toMs), startMs + 1);
  const share = (ms: number) => `${((ms - startMs) / (endMs - startMs)) * 100}%`;
  return (
    <figure className="lanes" aria-label={overviewText.lanes}>
      {lanes.map(({ leg, role, spans: ofLeg }) => (
        <div key={leg} className="lane">
          <Text size="xs" c="dimmed" component="span">
            {roleText[role]}
          </Text>
          <ul className="lane-bar">
            {ofLeg.map(({ state, fromMs, toMs }) => (
              <li
                key={`${state}-${fromMs}`}
                data-state={state}
                title={label(state, fromMs, toMs)}
                aria-label={label(state, fromMs, toMs)}
                style={{ left: share(fromMs), width: `calc(${share(toMs)} - ${share(fromMs)})` }}
              />
            ))}
          </ul>
        </div>
      ))}
      <div className="lane lane-axis">
        <span />
        <Text size="xs" c="dimmed" component="div" className="tabular lane-ends">
          <span>{duration(0)}</span>
          <span className="lane-legend">
            {STATES.map((state) => (
              <span key={state}>
                <i data-state={state} aria-hidden />
                {overviewText.laneState[state]}
              </span>
            ))}
          </span>
          <span>{duration((endMs - startMs) / 1000)}</span>
        </Text>
      </div>
    </figure>
  );
}

const STATES = ['dialing', 'ringing', 'connected', 'held'] as const;

function label(state: (typeof STATES)[number], fromMs: number, toMs: number): string {
  const from = timeOfDay(new Date(fromMs).toISOString());
  return overviewText.span(overviewText.laneState[state], from, duration((toMs - fromMs) / 1000));
}
