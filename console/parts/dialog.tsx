import { Modal, type ModalProps } from '@mantine/core';
import { ReturnFocus } from './return-focus.ts';

export function Dialog({ children, ...modal }: ModalProps) {
  return (
    <Modal {...modal}>
      <ReturnFocus />
      {children}
    </Modal>
  );
}
