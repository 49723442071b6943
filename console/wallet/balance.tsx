import { Alert, Paper, SimpleGrid, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { money } from '../parts/format.ts';
import { Loaded } from '../parts/loaded.tsx';
import { walletText as text } from '../text/wallet.ts';
import { walletQuery } from './queries.ts';

export function Balance() {
  const wallet = useQuery(walletQuery);
  return (
    <Loaded query={wallet}>
      {({ available, held, balance }) => (
        <>
          <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm" mb="md">
            <Amount label={text.available} hint={text.availableHint} usd={available} />
            <Amount label={text.held} hint={text.heldHint} usd={held} />
            <Amount label={text.balance} hint={text.balanceHint} usd={balance} />
          </SimpleGrid>
          {available <= 0 && (
            <Alert color="yellow" mb="md" role="status">
              {text.empty}
            </Alert>
          )}
        </>
      )}
    </Loaded>
  );
}

function Amount({ label, hint, usd }: { label: string; hint: string; usd: number }) {
  return (
    <Paper withBorder px="md" py="sm">
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <Text size="xl" fw={600} className="tabular">
        {money(usd)}
      </Text>
      <Text size="xs" c="dimmed">
        {hint}
      </Text>
    </Paper>
  );
}
