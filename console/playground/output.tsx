import { Box } from '@mantine/core';
import type { ReactNode } from 'react';

/** Scrollable text. Keyboard scrolling needs the focus. */
export function Output({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Box component="section" className="output output-scroll" aria-label={label} tabIndex={0}>
      {children}
    </Box>
  );
}
