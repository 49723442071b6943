import { Group, Stack, Text, Title } from '@mantine/core';
import { useSession } from '../app/session.ts';
import { CopyBlock, CopyField } from '../parts/copy-field.tsx';
import { Facts } from '../parts/facts.tsx';
import { developersText as text } from '../text/developers.ts';

/** A command that works once `TANDEM_API_KEY` is set. */
export function TryIt() {
  const { workspace } = useSession();
  const { origin } = location;
  const curl = `curl '${origin}/dialer/click2call?limit=5' \\\n  -H "Authorization: Bearer $TANDEM_API_KEY"`;
  return (
    <section>
      <Title order={2} size="h5" mb={4}>
        {text.try}
      </Title>
      <Stack gap="sm">
        <Text size="sm" c="dimmed">
          {text.tryHint}
        </Text>
        <CopyBlock value={curl} label={text.tryLabel} />
        <Group>
          <Facts
            facts={[
              { label: text.address, value: <CopyField value={origin} label={text.address} /> },
              { label: text.workspace, value: <CopyField value={workspace.id} label={text.workspace} /> },
            ]}
          />
        </Group>
      </Stack>
    </section>
  );
}
