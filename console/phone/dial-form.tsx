import { Alert, Button, Card, Checkbox, Group, Text, TextInput, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Phone } from 'lucide-react';
import { useUrlSearch } from '../app/url-search.ts';
import { dialText } from '../text/phone.ts';
import { placeCall } from './agent-phone.ts';
import { MicrophoneError } from './microphone.ts';

/** Calls a number, optionally from the address (`?number=`). */
export function DialForm({ isReady }: { isReady: boolean }) {
  const [search] = useUrlSearch();
  const placing = useMutation({ mutationFn: placeCall });
  // The page shows advice for microphone errors itself.
  const error = placing.error instanceof MicrophoneError ? null : placing.error;
  return (
    <Card withBorder>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const fields = new FormData(event.currentTarget);
          placing.mutate({ number: String(fields.get('number')), record: fields.has('record') });
        }}
      >
        <Title order={2} size="h5" mb="xs">
          {dialText.title}
        </Title>
        <TextInput
          name="number"
          type="tel"
          inputMode="tel"
          autoComplete="off"
          label={dialText.label}
          placeholder={dialText.placeholder}
          defaultValue={search.number ?? ''}
          size="md"
          required
        />
        <Group justify="space-between" mt="sm">
          <Checkbox name="record" label={dialText.record} />
          <Button
            type="submit"
            color="green"
            leftSection={<Phone size={16} aria-hidden />}
            loading={placing.isPending}
            disabled={!isReady}
          >
            {dialText.submit}
          </Button>
        </Group>
        {error && (
          <Alert color="red" mt="sm">
            {error.message}
          </Alert>
        )}
        <Text size="xs" c="dimmed" mt="sm">
          {dialText.hint}
        </Text>
      </form>
    </Card>
  );
}
