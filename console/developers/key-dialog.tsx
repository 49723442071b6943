import { Checkbox, NativeSelect, Radio, SimpleGrid, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { scopeText, keysText as text } from '../text/developers.ts';
import { allKeysQuery, type Scope } from './queries.ts';

const SCOPES: readonly Scope[] = Object.keys(scopeText satisfies Record<Scope, string>) as Scope[];
const DAY_MS = 86_400_000;

interface KeyDialogProps {
  isOpen: boolean;
  onClose: () => void;
  /** Receives the key, which the server returns once. */
  onCreated: (key: string) => void;
}

export function KeyDialog({ isOpen, onClose, onCreated }: KeyDialogProps) {
  const create = async (fields: Record<string, string>) => {
    const scopes = SCOPES.filter((scope) => fields[scope] !== undefined);
    const days = Number(fields.expires_in);
    const created = await dataOf(
      api.POST('/developer/api', {
        body: {
          name: fields.name!.trim(),
          ...(fields.access === 'some' && { scopes }),
          ...(days > 0 && { expires_at: new Date(Date.now() + days * DAY_MS).toISOString() }),
        },
      }),
    );
    await queryClient.invalidateQueries({ queryKey: allKeysQuery.queryKey });
    onCreated(created.key);
  };
  return (
    <FormDialog
      title={text.create}
      submitLabel={text.submit}
      size="lg"
      isOpen={isOpen}
      onClose={onClose}
      onSubmit={create}
    >
      <TextInput
        name="name"
        label={text.name}
        description={text.nameHint}
        maxLength={100}
        autoComplete="off"
        required
        data-autofocus
      />
      <ScopeFields />
      <NativeSelect
        name="expires_in"
        label={text.expiry}
        data={Object.entries(text.expiries)
          .map(([value, label]) => ({ value, label }))
          .toSorted((a, b) => Number(a.value) - Number(b.value))}
      />
    </FormDialog>
  );
}

/** An empty list of scopes would allow everything, so the form requires at least one. */
function ScopeFields() {
  const [access, setAccess] = useState('all');
  const [chosen, setChosen] = useState<string[]>([]);
  return (
    <>
      <Radio.Group name="access" label={text.scope} value={access} onChange={setAccess}>
        <Stack gap="xs" mt="xs">
          <Radio value="all" label={text.all} />
          <Radio value="some" label={text.some} />
        </Stack>
      </Radio.Group>
      {access === 'some' && (
        <Checkbox.Group aria-label={text.scopesLabel} value={chosen} onChange={setChosen}>
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="xs" verticalSpacing="xs">
            {SCOPES.map((scope) => (
              <Checkbox
                key={scope}
                name={scope}
                value={scope}
                size="xs"
                label={scope}
                description={scopeText[scope]}
                required={chosen.length === 0}
              />
            ))}
          </SimpleGrid>
        </Checkbox.Group>
      )}
    </>
  );
}
