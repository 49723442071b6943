import { Button, Group, type ModalProps, Stack } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { partText } from '../text/app.ts';
import { ActionError } from './action-error.tsx';
import { Dialog } from './dialog.tsx';

interface FormDialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  submitLabel: string;
  size?: ModalProps['size'];
  children: ReactNode;
  /** Receives the fields by name. On rejection the dialog shows the error and keeps the values. */
  onSubmit: (fields: Record<string, string>) => Promise<unknown>;
  /** Advice for an error, if its message has none. */
  hintOf?: (error: Error) => ReactNode;
}

/** A form in a dialog, which closes when the server accepts it. */
export function FormDialog({ title, isOpen, onClose, submitLabel, size, children, onSubmit, hintOf }: FormDialogProps) {
  const action = useMutation({ mutationFn: onSubmit, onSuccess: onClose });
  const close = () => {
    action.reset();
    onClose();
  };
  return (
    <Dialog opened={isOpen} onClose={close} title={title} size={size}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const fields = [...new FormData(event.currentTarget)].map(([name, value]) => [name, String(value)]);
          action.mutate(Object.fromEntries(fields));
        }}
      >
        <Stack>
          {children}
          {action.error && <ActionError error={action.error} hint={hintOf?.(action.error)} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              {partText.cancel}
            </Button>
            <Button type="submit" loading={action.isPending}>
              {submitLabel}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
