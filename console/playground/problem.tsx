import { Stack, Text } from '@mantine/core';
import { BrainCircuit } from 'lucide-react';
import { ApiError } from '../app/api-error.ts';
import { CopyBlock } from '../parts/copy-field.tsx';
import { EmptyState, ErrorState } from '../parts/states.tsx';
import { noModelText } from '../text/playground.ts';

/** An error with advice: 402 links to the wallet, a missing language model to its settings. */
export function Problem({ error, need, onRetry }: { error: unknown; need: string; onRetry?: () => void }) {
  if (error instanceof ApiError && error.code === 'LLM_NOT_CONFIGURED') return <NoModel need={need} role="alert" />;
  return <ErrorState error={error} {...(onRetry && { onRetry })} />;
}

/** How to configure a language model. */
export function NoModel({ need, role = 'status' }: { need: string; role?: 'status' | 'alert' }) {
  return (
    <EmptyState icon={BrainCircuit} title={noModelText.title} role={role}>
      <Text size="sm" mb="sm">
        {need} {noModelText.how}
      </Text>
      <Stack gap="sm" ta="left">
        <div>
          <Text size="sm">{noModelText.server}</Text>
          <CopyBlock value={noModelText.serverSettings} label={noModelText.server} />
        </div>
        <div>
          <Text size="sm">{noModelText.file}</Text>
          <CopyBlock value={noModelText.fileSettings} label={noModelText.file} />
        </div>
      </Stack>
    </EmptyState>
  );
}
