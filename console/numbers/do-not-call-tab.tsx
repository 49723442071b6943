import { Button, Group, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { PhoneOff, Plus } from 'lucide-react';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { useMay } from '../app/session.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { FormDialog } from '../parts/form-dialog.tsx';
import { count } from '../parts/format.ts';
import { LoadMore } from '../parts/load-more.tsx';
import { notifyDone } from '../parts/notify.ts';
import { EmptyState, ErrorState, LoadingState } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { doNotCallText as text } from '../text/numbers.ts';
import { doNotCallQuery } from './queries.ts';

interface Entry {
  e164: string;
  created_at: string;
}

export function DoNotCallTab() {
  const may = useMay();
  const list = useInfiniteQuery(doNotCallQuery);
  const [isAdding, adding] = useDisclosure(false);
  if (list.data === undefined) {
    return list.error ? <ErrorState error={list.error} onRetry={() => void list.refetch()} /> : <LoadingState />;
  }
  const entries = list.data.pages.flatMap(({ numbers }) => numbers);
  const total = list.data.pages.at(-1)!.pagination.total;
  const add = may.administer && (
    <Button size="xs" leftSection={<Plus size={14} aria-hidden />} onClick={adding.open}>
      {text.add}
    </Button>
  );
  return (
    <Stack maw={720}>
      <Group justify="space-between" align="end">
        <Check />
        {entries.length > 0 && add}
      </Group>
      <Text size="sm" c="dimmed">
        {text.intro} {total > 0 && `${text.total(count(total))}.`}
      </Text>
      <DataTable
        label={text.list}
        rows={entries}
        rowKey={({ e164 }) => e164}
        columns={may.administer ? [...COLUMNS, REMOVE] : COLUMNS}
        empty={
          <EmptyState icon={PhoneOff} title={text.emptyTitle} actions={add}>
            {text.emptyHint}
          </EmptyState>
        }
      />
      <LoadMore list={list} />
      <AddDialog isOpen={isAdding} onClose={adding.close} />
    </Stack>
  );
}

function Check() {
  const check = useMutation({
    mutationFn: async (number: string) => {
      const { listed } = await dataOf(api.POST('/dialer/do-not-call/check', { body: { numbers: [number] } }));
      return listed.length > 0 ? text.listed(listed[0]!) : text.notListed(number);
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        check.mutate(String(new FormData(event.currentTarget).get('number')).trim());
      }}
    >
      <Group align="end" gap="xs">
        <TextInput name="number" type="tel" label={text.check} autoComplete="off" required />
        <Button type="submit" variant="default" loading={check.isPending}>
          {text.checkSubmit}
        </Button>
      </Group>
      <Text size="sm" mt={6} role="status">
        {check.error?.message ?? check.data}
      </Text>
    </form>
  );
}

function AddDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const add = async ({ numbers }: Record<string, string>) => {
    const listed = numbers!.split(/[\n,;]+/).map((number) => number.trim());
    const { added } = await dataOf(
      api.POST('/dialer/do-not-call', { body: { numbers: listed.filter((number) => number !== '') } }),
    );
    await refresh();
    notifyDone(text.addedCount(added));
  };
  return (
    <FormDialog title={text.add} submitLabel={text.add} isOpen={isOpen} onClose={onClose} onSubmit={add}>
      <Textarea
        name="numbers"
        label={text.numbers}
        description={text.addHint}
        autosize
        minRows={4}
        maxRows={12}
        required
        data-autofocus
      />
    </FormDialog>
  );
}

function refresh(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: doNotCallQuery.queryKey });
}

const COLUMNS: readonly Column<Entry>[] = [
  {
    id: 'number',
    header: text.number,
    cell: ({ e164 }) => (
      <Text size="sm" className="tabular">
        {e164}
      </Text>
    ),
  },
  { id: 'added', header: text.added, visibleFrom: 'xs', cell: ({ created_at: at }) => <Time at={at} /> },
];

const REMOVE: Column<Entry> = {
  id: 'remove',
  header: text.remove,
  align: 'right',
  cell: ({ e164 }) => {
    const remove = async () => {
      await dataOf(api.DELETE('/dialer/do-not-call/{e164}', { params: { path: { e164 } } }));
      await refresh();
      notifyDone(text.removed(e164));
    };
    return (
      <Group justify="flex-end">
        <ConfirmButton
          size="compact-xs"
          aria-label={`${text.remove}: ${e164}`}
          title={text.removeTitle(e164)}
          message={text.removeMessage}
          confirmLabel={text.removeConfirm}
          onConfirm={remove}
        >
          {text.remove}
        </ConfirmButton>
      </Group>
    );
  },
};
