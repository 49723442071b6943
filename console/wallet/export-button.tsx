import { Button } from '@mantine/core';
import { Download } from 'lucide-react';
import { urlOf } from '../app/url-of.ts';
import { ledgerText as text } from '../text/wallet.ts';

/** Downloads a list as CSV. `query` selects the shown rows. */
export function ExportButton({ query }: { query: Record<string, string> }) {
  return (
    <Button
      component="a"
      href={urlOf('/billing/export.csv', query)}
      download
      size="xs"
      variant="default"
      ml="auto"
      leftSection={<Download size={14} aria-hidden />}
    >
      {text.export}
    </Button>
  );
}
