import {
  NativeSelect,
  NumberInput,
  PasswordInput,
  Radio,
  SimpleGrid,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useMay, useSession } from '../app/session.ts';
import { membersQuery } from '../people/queries.ts';
import { ruleText as text } from '../text/numbers.ts';
import type { InboundRule } from './queries.ts';

type Action = InboundRule['action'];
/** Shared by `forward` and the fallback of `ask`. */
type Forward = NonNullable<InboundRule['fallback']>;

/** Shows only the chosen action's fields, so that `inbound-fields.ts` sends no others. */
export function InboundForm({ rule }: { rule: InboundRule | null }) {
  const [action, setAction] = useState<Action>(rule?.action ?? 'reject');
  return (
    <Stack>
      <Radio.Group name="action" label={text.action} value={action} onChange={(value) => setAction(value as Action)}>
        <Stack gap="xs" mt="xs">
          {Object.entries(text.actions).map(([value, label]) => (
            <Radio key={value} value={value} label={label} />
          ))}
        </Stack>
      </Radio.Group>
      {action === 'forward' && (
        <>
          <ForwardFields forward={rule?.action === 'forward' ? (rule as Forward) : undefined} />
          <CallbackFields url={rule?.callback_url ?? ''} />
        </>
      )}
      {action === 'ask' && <AskFields rule={rule} />}
    </Stack>
  );
}

function AskFields({ rule }: { rule: InboundRule | null }) {
  const [fallback, setFallback] = useState<Forward['action']>(rule?.fallback?.action ?? 'reject');
  return (
    <>
      <TextInput
        name="url"
        type="url"
        label={text.url}
        description={text.urlHint}
        defaultValue={rule?.url ?? ''}
        required
      />
      <PasswordInput
        name="secret"
        label={text.secret}
        description={text.secretHint}
        minLength={16}
        maxLength={256}
        autoComplete="new-password"
        required
      />
      <NativeSelect
        name="fallback"
        label={text.fallback}
        value={fallback}
        onChange={(event) => setFallback(event.currentTarget.value as Forward['action'])}
        data={[
          { value: 'reject', label: text.actions.reject },
          { value: 'forward', label: text.actions.forward },
        ]}
      />
      {fallback === 'forward' && <ForwardFields forward={rule?.fallback} />}
    </>
  );
}

function ForwardFields({ forward }: { forward: Forward | undefined }) {
  const [endpoint, setEndpoint] = useState<'phone' | 'webrtc'>(forward?.endpoint?.type ?? 'phone');
  return (
    <>
      <NativeSelect
        name="endpoint"
        label={text.endpoint}
        value={endpoint}
        onChange={(event) => setEndpoint(event.currentTarget.value as 'phone' | 'webrtc')}
        data={Object.entries(text.endpoints).map(([value, label]) => ({ value, label }))}
      />
      {endpoint === 'phone' ? (
        <TextInput
          name="number"
          type="tel"
          label={text.number}
          description={text.numberHint}
          defaultValue={forward?.endpoint?.number ?? ''}
          required
        />
      ) : (
        <UserField userId={forward?.endpoint?.user_id} />
      )}
      <SimpleGrid cols={2}>
        <NumberInput
          name="ring_timeout"
          label={text.ringTimeout}
          defaultValue={forward?.ring_timeout ?? 30}
          min={5}
          max={60}
          allowDecimal={false}
          required
        />
        <NumberInput
          name="max_duration"
          label={text.maxDuration}
          defaultValue={forward?.max_duration ?? 3600}
          min={30}
          max={7200}
          allowDecimal={false}
          required
        />
      </SimpleGrid>
      <Textarea
        name="announce"
        label={text.announce}
        description={text.announceHint}
        defaultValue={forward?.announce ?? ''}
        maxLength={500}
        autosize
        minRows={1}
      />
      {forward?.voice_id && <input type="hidden" name="voice_id" value={forward.voice_id} />}
      <Switch name="record" label={text.record} defaultChecked={forward?.record ?? false} />
      <Switch name="transcribe" label={text.transcribe} defaultChecked={forward?.transcribe ?? false} />
    </>
  );
}

/** Admins choose among the members. Others can only choose themselves, or keep the current user. */
function UserField({ userId }: { userId: number | undefined }) {
  const { id, email, workspace } = useSession();
  const members = useQuery({ ...membersQuery(workspace.id), enabled: useMay().administer });
  const choices = new Map([[id, text.you(email)]]);
  if (userId !== undefined && userId !== id) choices.set(userId, `${text.user} ${userId}`);
  for (const member of members.data ?? []) if (member.user_id !== id) choices.set(member.user_id, member.email);
  return (
    <NativeSelect
      key={choices.size}
      name="user_id"
      label={text.user}
      description={text.userHint}
      defaultValue={String(userId ?? id)}
      data={[...choices].map(([value, label]) => ({ value: String(value), label }))}
    />
  );
}

function CallbackFields({ url }: { url: string }) {
  const [typed, setTyped] = useState(url);
  return (
    <>
      <TextInput
        name="callback_url"
        type="url"
        label={text.callbackUrl}
        description={text.callbackUrlHint}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      {typed !== '' && (
        <PasswordInput
          name="callback_secret"
          label={text.callbackSecret}
          description={text.secretHint}
          minLength={16}
          maxLength={256}
          autoComplete="new-password"
          required
        />
      )}
    </>
  );
}
