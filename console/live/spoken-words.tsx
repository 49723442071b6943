import { Text } from '@mantine/core';
import { roleText } from '../text/call-words.ts';
import { liveText } from '../text/live.ts';
import type { LiveEntry } from './live-state.ts';

const SHOWN_SEGMENTS = 2;

/** Latest words of a call, as they arrive. */
export function SpokenWords({ entry: { call, spoken } }: { entry: LiveEntry }) {
  if (spoken.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {call.transcribe_requested ? liveText.nothingSaid : liveText.notTranscribed}
      </Text>
    );
  }
  return (
    <ul className="spoken" aria-label={liveText.words}>
      {spoken.slice(-SHOWN_SEGMENTS).map(({ leg, role, start, text, is_final: isFinal }) => (
        <li key={`${leg}-${start}`} data-role={role} data-final={isFinal}>
          <b>{roleText[role]}</b> <bdi>{text}</bdi>
        </li>
      ))}
    </ul>
  );
}
