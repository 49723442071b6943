import { Group, Text } from '@mantine/core';
import { timeOfDay } from '../../parts/format.ts';
import { overviewText } from '../../text/call.ts';
import { causeText, eventText, roleText } from '../../text/call-words.ts';
import type { CallEvent, Leg } from '../call-data.ts';
import { legOfEvent } from './lanes.ts';
import './event-list.css';

interface EventListProps {
  events: readonly CallEvent[];
  legs: readonly Leg[];
}

/** The event log, oldest first, with the time since the event before. */
export function EventList({ events, legs }: EventListProps) {
  return (
    <ol className="events">
      {events.map((event, index) => (
        <li key={event.sequence} data-subject={event.event.split('.')[0]}>
          <Text component="time" size="xs" c="dimmed" className="tabular" dateTime={event.at} title={event.at}>
            {timeOfDay(event.at)}
            <br />
            {since(events[index - 1], event)}
          </Text>
          <div>
            <Group gap="xs" align="baseline">
              <Text size="sm" fw={500}>
                {eventText(event.event)}
              </Text>
              <Text size="xs" c="dimmed" ff="monospace">
                {event.event}
              </Text>
            </Group>
            <Text size="sm" c="dimmed">
              {explanationOf(event, legs)}
            </Text>
          </div>
        </li>
      ))}
    </ol>
  );
}

function since(previous: CallEvent | undefined, { at }: CallEvent): string {
  if (previous === undefined) return '';
  const ms = Math.max(0, Date.parse(at) - Date.parse(previous.at));
  return ms < 1_000 ? `+${ms} ms` : `+${(ms / 1_000).toFixed(1)} s`;
}

function explanationOf(event: CallEvent, legs: readonly Leg[]): string {
  const { sip_status: status, hangup_cause: cause, detail, transcript, data } = event;
  const leg = legOfEvent(event);
  const role = legs.find(({ leg_id: id }) => id === leg)?.role;
  const facts = Object.entries(data ?? {})
    .filter(([name, value]) => name !== 'leg_id' && value !== null)
    .map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : value}`);
  return [
    role && roleText[role],
    status !== null && overviewText.sip(status),
    cause !== null && causeText(cause),
    transcript && `“${transcript.text}”`,
    detail,
    ...facts,
  ]
    .filter(Boolean)
    .join(' · ');
}
