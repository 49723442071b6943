import { Button, Text } from '@mantine/core';
import { ConfirmButton } from './confirm-button.tsx';
import { notifyFailed } from './notify.ts';

interface SwitchActionsProps {
  isActive: boolean;
  text: Record<
    | 'enable'
    | 'disable'
    | 'disableTitle'
    | 'disableMessage'
    | 'delete'
    | 'deleteTitle'
    | 'deleteMessage'
    | 'deleteConfirm',
    string
  >;
  onEnable: () => Promise<void>;
  onDisable: () => Promise<void>;
  onDelete: () => Promise<void>;
}

/** Enables at once; disables and deletes after a confirmation. */
export function SwitchActions({ isActive, text, onEnable, onDisable, onDelete }: SwitchActionsProps) {
  return (
    <>
      {isActive ? (
        <ConfirmButton
          title={text.disableTitle}
          message={text.disableMessage}
          confirmLabel={text.disable}
          onConfirm={onDisable}
        >
          {text.disable}
        </ConfirmButton>
      ) : (
        <Button size="xs" variant="default" onClick={() => void onEnable().catch(notifyFailed)}>
          {text.enable}
        </Button>
      )}
      <ConfirmButton
        title={text.deleteTitle}
        message={text.deleteMessage}
        confirmLabel={text.deleteConfirm}
        onConfirm={onDelete}
      >
        <Text component="span" inherit c="var(--mantine-color-error)">
          {text.delete}
        </Text>
      </ConfirmButton>
    </>
  );
}
