import { Drawer, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { ReturnFocus } from './return-focus.ts';

interface SidePanelProps {
  title: ReactNode;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** Details beside a list. */
export function SidePanel({ title, isOpen, onClose, children }: SidePanelProps) {
  return (
    <Drawer opened={isOpen} onClose={onClose} title={title} position="right" size="lg">
      <ReturnFocus />
      <Stack gap="lg">{children}</Stack>
    </Drawer>
  );
}
