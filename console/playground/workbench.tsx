import { Alert, Anchor, Button, Card, Group, Stack, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../app/session.ts';
import { CopyBlock } from '../parts/copy-field.tsx';
import { playgroundText } from '../text/playground.ts';
import { type PricedService, PriceNote } from './price-note.tsx';

interface WorkbenchProps {
  settings: ReactNode;
  service: PricedService;
  /** Billing unit of the service. */
  price: string;
  /** Label of the run button. Omit it if the settings have their own. */
  run?: string;
  isRunning?: boolean;
  isReady?: boolean;
  onRun?: () => void;
  /** Stops the current run. */
  onStop?: () => void;
  children: ReactNode;
  code: string;
  codeHint?: string;
  codeTitle: string;
}

/** Settings on the left, the result on the right, and equivalent code below. */
export function Workbench({
  settings,
  service,
  price,
  run,
  isRunning,
  isReady,
  onRun,
  onStop,
  children,
  ...code
}: WorkbenchProps) {
  const { write } = useMay();
  return (
    <div className="workbench">
      <Card
        withBorder
        padding="md"
        component="form"
        aria-label={playgroundText.settings}
        onSubmit={(event) => {
          event.preventDefault();
          if (write && !isRunning) onRun?.();
        }}
      >
        <Stack gap="sm">
          {settings}
          {run !== undefined && (
            <Group gap="xs" grow>
              <Button type="submit" loading={isRunning === true} disabled={!write || isReady === false}>
                {run}
              </Button>
              {isRunning && onStop && (
                <Button variant="default" onClick={onStop}>
                  {playgroundText.stop}
                </Button>
              )}
            </Group>
          )}
          <PriceNote service={service}>{price}</PriceNote>
          {!write && <Alert color="gray">{playgroundText.viewer}</Alert>}
        </Stack>
      </Card>
      <Stack gap="md" miw={0}>
        <Card withBorder padding={0} component="section" aria-label={playgroundText.result} mih={260}>
          {children}
        </Card>
        <CodePanel {...code} />
      </Stack>
    </div>
  );
}

function CodePanel({ code, codeHint, codeTitle }: Pick<WorkbenchProps, 'code' | 'codeHint' | 'codeTitle'>) {
  return (
    <Card withBorder padding="md" component="section" aria-label={playgroundText.code}>
      <Group justify="space-between" mb="xs" gap="xs">
        <Title order={2} size="h5">
          {playgroundText.code}
        </Title>
        <Text size="xs" c="dimmed">
          {codeHint} {playgroundText.codeHint}{' '}
          <Anchor component={Link} to="/developers" inherit underline="always">
            {playgroundText.getKey}
          </Anchor>
        </Text>
      </Group>
      <CopyBlock value={code} label={codeTitle} />
    </Card>
  );
}
