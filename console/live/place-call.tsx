import {
  Anchor,
  Button,
  Collapse,
  Group,
  JsonInput,
  NativeSelect,
  SegmentedControl,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ChevronDown, PhoneCall } from 'lucide-react';
import { useState } from 'react';
import { ApiError } from '../app/api-error.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { notifyDone } from '../parts/notify.ts';
import { placeText, refusalHints } from '../text/live.ts';
import { callerIdsQuery, mayBePlaced, placementOf, usePlacement } from './placement.ts';

export function PlaceCallButton() {
  const [isOpen, dialog] = useDisclosure(false);
  return (
    <>
      <Button leftSection={<PhoneCall size={16} aria-hidden />} onClick={dialog.open}>
        {placeText.button}
      </Button>
      <PlaceCallDialog isOpen={isOpen} onClose={dialog.close} />
    </>
  );
}

function PlaceCallDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [agentIs, setAgentIs] = useState('phone');
  const [hasMore, more] = useDisclosure(false);
  const numbers = useQuery({ ...callerIdsQuery, enabled: isOpen });
  const { place, forget } = usePlacement();
  const close = () => {
    forget();
    onClose();
  };
  const submit = async (fields: Record<string, string>) => {
    await place(placementOf({ ...fields, agentIs }));
    notifyDone(placeText.placed);
  };
  return (
    <FormDialog
      title={placeText.title}
      isOpen={isOpen}
      onClose={close}
      submitLabel={placeText.submit}
      onSubmit={submit}
      hintOf={hintOf}
    >
      <SegmentedControl
        aria-label={placeText.agentIs}
        value={agentIs}
        onChange={setAgentIs}
        data={[
          { value: 'phone', label: placeText.aPhone },
          { value: 'browser', label: placeText.myBrowser },
        ]}
      />
      {agentIs === 'phone' ? (
        <PhoneField name="agent" label={placeText.agent} hint={placeText.agentHint} hasFocus />
      ) : (
        <Text size="sm" c="dimmed">
          {placeText.myBrowserHint}
        </Text>
      )}
      <PhoneField name="customer" label={placeText.customer} hint={placeText.customerHint} />
      <NativeSelect
        name="did"
        label={placeText.callerId}
        data={[
          { value: '', label: placeText.callerIdDefault },
          ...(numbers.data ?? []).map(({ e164 }) => ({ value: e164, label: e164 })),
        ]}
      />
      <Group gap="xl">
        <Switch name="record" label={placeText.record} description={placeText.recordHint} />
        <Switch name="transcribe" label={placeText.transcribe} description={placeText.transcribeHint} />
      </Group>
      <div>
        <Button
          variant="subtle"
          size="compact-sm"
          onClick={more.toggle}
          aria-expanded={hasMore}
          rightSection={<ChevronDown size={14} aria-hidden />}
        >
          {placeText.more}
        </Button>
        <Collapse expanded={hasMore}>
          <Stack mt="sm">
            <TextInput
              name="reference"
              label={placeText.reference}
              description={placeText.referenceHint}
              maxLength={128}
            />
            <JsonInput
              name="metadata"
              label={placeText.metadata}
              description={placeText.metadataHint}
              validationError={placeText.metadataInvalid}
              autosize
              minRows={2}
            />
          </Stack>
        </Collapse>
      </div>
      <Text size="xs" c="dimmed">
        {placeText.cost}
      </Text>
    </FormDialog>
  );
}

interface PhoneFieldProps {
  name: string;
  label: string;
  hint: string;
  hasFocus?: boolean;
}

function PhoneField({ name, label, hint, hasFocus }: PhoneFieldProps) {
  return (
    <TextInput
      name={name}
      type="tel"
      label={label}
      description={hint}
      placeholder={placeText.numberExample}
      required
      autoComplete="off"
      data-autofocus={hasFocus}
    />
  );
}

function hintOf(error: Error) {
  const hint = error instanceof ApiError ? refusalHints[error.code] : undefined;
  if (hint === undefined) return mayBePlaced(error) ? placeText.mayBePlaced : null;
  return (
    <>
      {hint.text}{' '}
      {hint.to && (
        <Anchor component={Link} to={hint.to} size="sm">
          {hint.link}
        </Anchor>
      )}
    </>
  );
}
