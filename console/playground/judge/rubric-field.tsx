import { Button, Select, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { api, dataOf } from '../../app/api.ts';
import { queryClient } from '../../app/query-client.ts';
import { useMay } from '../../app/session.ts';
import { useUrlSearch } from '../../app/url-search.ts';
import { notifyDone, notifyFailed } from '../../parts/notify.ts';
import { judgeText } from '../../text/playground.ts';
import { rubricsQuery } from '../queries.ts';

/** The rubric of the address (`?rubric=`), or an example to create if there are none. */
export function RubricField() {
  const [search, change] = useUrlSearch();
  const { write } = useMay();
  const rubrics = useQuery(rubricsQuery);
  const create = useMutation({
    mutationFn: async () => await dataOf(api.POST('/judge/rubrics', { body: judgeText.exampleRubric })),
    onSuccess: async ({ id }) => {
      await queryClient.invalidateQueries({ queryKey: rubricsQuery.queryKey });
      change({ rubric: id });
      notifyDone(judgeText.created);
    },
    onError: notifyFailed,
  });
  if (rubrics.data?.length === 0) {
    return (
      <div>
        <Text size="sm" fw={500}>
          {judgeText.rubric}
        </Text>
        <Text size="sm" c="dimmed" mb={4}>
          {judgeText.noRubrics}
        </Text>
        <Button variant="light" size="xs" onClick={() => create.mutate()} loading={create.isPending} disabled={!write}>
          {judgeText.createRubric}
        </Button>
      </div>
    );
  }
  return (
    <Select
      label={judgeText.rubric}
      placeholder={judgeText.chooseRubric}
      data={(rubrics.data ?? []).map(({ id, name, question_count: questions }) => ({
        value: id,
        label: `${name} (${judgeText.questions(questions)})`,
      }))}
      value={search.rubric ?? null}
      onChange={(rubric) => change({ rubric: rubric ?? undefined })}
      error={rubrics.error?.message}
      searchable
    />
  );
}
