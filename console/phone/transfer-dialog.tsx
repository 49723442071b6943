import { Radio, SegmentedControl, Select, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSession } from '../app/session.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { transferText } from '../text/phone.ts';
import { agentPhone } from './agent-phone.ts';
import { colleaguesQuery } from './queries.ts';

type Target = 'number' | 'colleague';

/** Asks for the transfer's target and mode. */
export function TransferDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [target, setTarget] = useState<Target>('number');
  const submit = async ({ number = '', user = '', mode }: Record<string, string>) => {
    const endpoint =
      target === 'number' ? { type: 'phone' as const, number } : { type: 'webrtc' as const, user_id: Number(user) };
    if (target === 'colleague' && user === '') throw new Error(transferText.chooseColleague);
    await agentPhone.controls?.transfer(endpoint, mode === 'attended' ? 'attended' : 'blind');
  };
  return (
    <FormDialog
      title={transferText.title}
      isOpen={isOpen}
      onClose={onClose}
      submitLabel={transferText.submit}
      onSubmit={submit}
    >
      <SegmentedControl
        aria-label={transferText.target}
        fullWidth
        value={target}
        onChange={(value) => setTarget(value as Target)}
        data={[
          { value: 'number', label: transferText.number },
          { value: 'colleague', label: transferText.colleague },
        ]}
      />
      {target === 'number' ? (
        <TextInput
          name="number"
          type="tel"
          inputMode="tel"
          autoComplete="off"
          label={transferText.numberLabel}
          required
          data-autofocus
        />
      ) : (
        <ColleagueSelect />
      )}
      <Radio.Group name="mode" label={transferText.how} defaultValue="blind">
        <Stack gap="xs" mt={4}>
          <Radio value="blind" label={transferText.blind} description={transferText.blindHint} />
          <Radio value="attended" label={transferText.attended} description={transferText.attendedHint} />
        </Stack>
      </Radio.Group>
      <Text size="xs" c="dimmed">
        {transferText.cost}
      </Text>
    </FormDialog>
  );
}

function ColleagueSelect() {
  const { workspace } = useSession();
  // The call stays in its workspace, also after a switch to another one.
  const { data: colleagues, error } = useQuery(colleaguesQuery(agentPhone.workspaceId ?? workspace.id));
  return (
    <Select
      name="user"
      label={transferText.colleagueLabel}
      description={transferText.colleagueHint}
      data={(colleagues ?? []).map(({ user_id: id, name }) => ({ value: String(id), label: name }))}
      searchable
      nothingFoundMessage={transferText.noColleague}
      error={error?.message}
      required
    />
  );
}
