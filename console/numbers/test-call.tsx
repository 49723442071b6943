import { Alert, Anchor, Checkbox, NativeSelect, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, dataOf } from '../app/api.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { money } from '../parts/format.ts';
import { testCallText as text } from '../text/trunks.ts';
import { poolQuery, type Trunk } from './queries.ts';
import { TestCallProgress } from './test-call-progress.tsx';

/** Seconds of talk: one charged minute. */
const LONGEST_TALK_S = 60;

interface TestCallProps {
  trunk: Trunk;
  isOpen: boolean;
  onClose: () => void;
}

/** Rings two phones over the trunk. Asks for confirmation, because it costs money and rings real phones. */
export function TestCall({ trunk, isOpen, onClose }: TestCallProps) {
  const pool = useQuery({ ...poolQuery, enabled: isOpen });
  const [callId, setCallId] = useState<string | null>(null);
  const dids = trunk.numbers.filter((number) => pool.data?.allocated.includes(number));
  const place = async ({ agent, customer, did }: Record<string, string>) => {
    const { call } = await dataOf(
      api.POST('/dialer/click2call', {
        body: {
          outbound_trunk_id: trunk.id,
          agent_number: agent!,
          customer_number: customer!,
          max_duration: LONGEST_TALK_S,
          metadata: { test_call: true },
          ...(did !== undefined && { did }),
        },
      }),
    );
    setCallId(call.call_id);
  };
  const price = trunk.price_per_minute_usd;
  return (
    <>
      <FormDialog
        title={text.title(trunk.name)}
        submitLabel={text.submit}
        isOpen={isOpen}
        onClose={onClose}
        onSubmit={place}
      >
        <Text size="sm">
          {text.intro} {price > 0 ? text.cost(money(price)) : text.free}
        </Text>
        <TextInput
          name="agent"
          type="tel"
          label={text.first}
          description={text.firstHint}
          autoComplete="tel"
          required
          data-autofocus
        />
        <TextInput
          name="customer"
          type="tel"
          label={text.second}
          description={text.secondHint}
          autoComplete="off"
          required
        />
        {dids.length > 0 && (
          <NativeSelect name="did" label={text.did} data={dids} defaultValue={trunk.default_caller_id ?? dids[0]} />
        )}
        {pool.data && dids.length === 0 && (
          <Alert color="yellow">
            {text.didNone}{' '}
            <Anchor component={Link} to="/numbers" inherit>
              {text.toNumbers}
            </Anchor>
          </Alert>
        )}
        <Checkbox name="confirmed" label={text.confirm} required />
      </FormDialog>
      <TestCallProgress callId={callId} trunkName={trunk.name} onClose={() => setCallId(null)} />
    </>
  );
}
