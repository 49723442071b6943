import { NativeSelect, Radio, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { notifyDone } from '../../parts/notify.ts';
import { actionsText } from '../../text/call-actions.ts';
import { roleText } from '../../text/call-words.ts';
import { type Call, legOf } from '../call-data.ts';
import { transfer } from './requests.ts';

interface TransferDialogProps {
  call: Pick<Call, 'call_id' | 'legs'>;
  isOpen: boolean;
  onClose: () => void;
}

/** Dials a target that replaces a party. */
export function TransferDialog({ call, isOpen, onClose }: TransferDialogProps) {
  const [target, setTarget] = useState('phone');
  const submit = async ({ leg, mode, number }: Record<string, string>) => {
    await transfer(call.call_id, {
      leg: leg ?? 'agent',
      mode: mode === 'attended' ? 'attended' : 'blind',
      number: target === 'phone' ? (number ?? '') : null,
    });
    notifyDone(actionsText.transferStarted);
  };
  return (
    <FormDialog
      title={actionsText.transferTitle}
      isOpen={isOpen}
      onClose={onClose}
      submitLabel={actionsText.transferSubmit}
      onSubmit={submit}
    >
      <NativeSelect
        label={actionsText.transferTo}
        value={target}
        onChange={({ currentTarget }) => setTarget(currentTarget.value)}
        data={[
          { value: 'phone', label: actionsText.toPhone },
          { value: 'browser', label: actionsText.toBrowser },
        ]}
      />
      {target === 'phone' && (
        <TextInput
          name="number"
          type="tel"
          aria-label={actionsText.transferTo}
          description={actionsText.transferToHint}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          placeholder="+919812345678"
          required
          data-autofocus
        />
      )}
      <NativeSelect
        name="leg"
        label={actionsText.replaces}
        data={(['agent', 'customer'] as const).map((role) => ({
          value: legOf(call, role)?.leg_id ?? role,
          label: roleText[role],
        }))}
      />
      <Radio.Group name="mode" label={actionsText.transferMode} defaultValue="blind">
        <Stack gap={6} mt={4}>
          <Radio value="blind" label={<Text size="sm">{actionsText.blind}</Text>} />
          <Radio value="attended" label={<Text size="sm">{actionsText.attended}</Text>} />
        </Stack>
      </Radio.Group>
    </FormDialog>
  );
}
