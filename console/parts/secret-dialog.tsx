import { Button, Group, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { partText } from '../text/app.ts';
import { CopyField } from './copy-field.tsx';
import { Dialog } from './dialog.tsx';

/** Shows a secret that the server returns only once. It does not close by a click outside. */
export function SecretDialog({
  title,
  secret,
  onClose,
  children,
}: {
  title: string;
  secret: string | null;
  onClose: () => void;
  /** How to use it. */
  children?: ReactNode;
}) {
  return (
    <Dialog opened={secret !== null} onClose={onClose} title={title} closeOnClickOutside={false}>
      <Stack>
        <Text size="sm">{partText.secretHint}</Text>
        <CopyField value={secret ?? ''} label={title} />
        {children}
        <Group justify="flex-end">
          <Button onClick={onClose}>{partText.close}</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
