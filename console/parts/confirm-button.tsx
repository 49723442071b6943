import { Button, type ButtonProps, Group, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { partText } from '../text/app.ts';
import { ActionError } from './action-error.tsx';
import { Dialog } from './dialog.tsx';

interface ConfirmButtonProps extends ButtonProps {
  children: ReactNode;
  title: string;
  /** Consequences of the action. */
  message: ReactNode;
  confirmLabel: string;
  /** Rejects with the error that the dialog shows. */
  onConfirm: () => Promise<unknown>;
  'aria-label'?: string;
}

/** A button with confirmation, for actions that cost, disturb or cannot be undone. */
export function ConfirmButton({ children, title, message, confirmLabel, onConfirm, ...button }: ConfirmButtonProps) {
  const [isOpen, dialog] = useDisclosure(false);
  const action = useMutation({ mutationFn: onConfirm, onSuccess: dialog.close });
  const open = () => {
    action.reset();
    dialog.open();
  };
  return (
    <>
      <Button variant="default" size="xs" {...button} onClick={open}>
        {children}
      </Button>
      <Dialog opened={isOpen} onClose={dialog.close} title={title}>
        <Stack>
          <Text component="div" size="sm">
            {message}
          </Text>
          {action.error && <ActionError error={action.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={dialog.close}>
              {partText.cancel}
            </Button>
            <Button
              color={button.color ?? 'red'}
              loading={action.isPending}
              onClick={() => action.mutate()}
              data-autofocus
            >
              {confirmLabel}
            </Button>
          </Group>
        </Stack>
      </Dialog>
    </>
  );
}
