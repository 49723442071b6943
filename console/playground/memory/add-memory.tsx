import { Alert, Button, Card, Group, Text, Textarea, TextInput, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { queryClient } from '../../app/query-client.ts';
import { useMay } from '../../app/session.ts';
import { CopyIcon } from '../../parts/copy-field.tsx';
import { memoryText, playgroundText } from '../../text/playground.ts';
import { curlOf } from '../command.ts';
import { useDraft } from '../draft.ts';
import { costOf } from '../facts.tsx';
import { Problem } from '../problem.tsx';
import { ingest, ingestRequestOf, type NewMemory } from './memory-requests.ts';

const EMPTY: NewMemory = { text: '', title: '' };

/** Stores a text in the user's personal collection. */
export function AddMemory() {
  const { write } = useMay();
  const [memory, setMemory] = useDraft('memory.new', EMPTY);
  const add = useMutation({
    mutationFn: ingest,
    onSuccess: async () => {
      setMemory(EMPTY);
      await queryClient.invalidateQueries({ queryKey: ['memories'] });
    },
  });
  const command = curlOf({ method: 'POST', path: '/memory/ingest', json: ingestRequestOf(memory) }, location.origin);
  return (
    <Card
      withBorder
      padding="md"
      mb="md"
      component="form"
      aria-label={memoryText.addTitle}
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate(memory);
      }}
    >
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5">
          {memoryText.addTitle}
        </Title>
        <CopyIcon value={command} label={`${playgroundText.command}: ${memoryText.addTitle}`} />
      </Group>
      <Group align="flex-start" gap="sm" className="add-memory">
        <Textarea
          flex="3 1 260px"
          label={memoryText.text}
          description={memoryText.textHint}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          value={memory.text}
          onChange={(event) => setMemory({ ...memory, text: event.currentTarget.value })}
          maxLength={100_000}
          autosize
          minRows={2}
          maxRows={8}
          disabled={!write}
        />
        <TextInput
          flex="1 1 160px"
          label={memoryText.memoryTitle}
          value={memory.title}
          maxLength={500}
          onChange={(event) => setMemory({ ...memory, title: event.currentTarget.value })}
          disabled={!write}
        />
        <Button type="submit" mt={25} loading={add.isPending} disabled={!write || memory.text.trim() === ''}>
          {memoryText.add}
        </Button>
      </Group>
      {add.error && <Problem error={add.error} need="" />}
      {add.data && <Added result={add.data} />}
    </Card>
  );
}

function Added({ result }: { result: Awaited<ReturnType<typeof ingest>> }) {
  const [outcome] = result.results;
  const isDuplicate = outcome?.deduplicated_into !== undefined;
  if (outcome?.id === null && !isDuplicate) {
    return (
      <Alert color="red" mt="sm">
        {outcome.message}
      </Alert>
    );
  }
  return (
    <Text size="sm" mt="xs" role="status">
      {isDuplicate ? memoryText.duplicate : memoryText.added(result.collection_label)}{' '}
      {result.usd !== null && `${playgroundText.cost}: ${costOf(result.usd)}.`}
    </Text>
  );
}
