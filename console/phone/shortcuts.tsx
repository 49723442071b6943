import { Card, Group, Kbd, Stack, Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import { shortcutText } from '../text/phone.ts';
import { callActions } from './call-actions.ts';

/** By physical key, because Alt changes the letter on some systems. */
const SHORTCUTS: Readonly<Record<string, () => void>> = {
  KeyA: callActions.answer,
  KeyX: callActions.hangUp,
  KeyM: callActions.toggleMute,
  KeyO: () => void callActions.toggleHold(),
};

/** Shortcuts use Alt, so that they do not collide with typing. */
export function useCallShortcuts(isActive: boolean): void {
  useEffect(() => {
    if (!isActive) return;
    const onKeyDown = (event: KeyboardEvent) => {
      const action = SHORTCUTS[event.code];
      if (!action || !event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.repeat) return;
      event.preventDefault();
      action();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [isActive]);
}

const ROWS = [
  { label: shortcutText.answer, keys: ['Alt', 'A'] },
  { label: shortcutText.hangUp, keys: ['Alt', 'X'] },
  { label: shortcutText.mute, keys: ['Alt', 'M'] },
  { label: shortcutText.hold, keys: ['Alt', 'O'] },
  { label: shortcutText.keys, keys: ['0–9', '*', '#'] },
];

export function ShortcutsCard() {
  return (
    <Card withBorder>
      <Title order={2} size="h5" mb={4}>
        {shortcutText.title}
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        {shortcutText.scope}
      </Text>
      <Stack gap={6}>
        {ROWS.map(({ label, keys }) => (
          <Group key={label} justify="space-between" wrap="nowrap">
            <Text size="sm">{label}</Text>
            <Group gap={4} wrap="nowrap">
              {keys.map((key) => (
                <Kbd key={key} size="xs">
                  {key}
                </Kbd>
              ))}
            </Group>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}
