import { dateTime, day, timeOfDay } from './format.ts';

/** A time in the viewer's zone; hovering shows the full time with zone. */
export function Time({ at, show = 'both' }: { at: string; show?: 'both' | 'time' | 'day' }) {
  const text = { both: dateTime, time: timeOfDay, day }[show](at);
  return (
    <time dateTime={at} title={new Date(at).toString()} className="tabular">
      {text}
    </time>
  );
}
